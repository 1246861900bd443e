// The Kubernetes resource provider, built from its published Go module.
//
// The module's own main embeds two files that its release build generates, and they are not
// in the module; build.py derives both from schema.json and terraform-mapping.json there.
package main

import (
	_ "embed"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

//go:embed generated/schema.json
var schema []byte

//go:embed generated/terraform-mapping.json
var terraformMapping []byte

func main() {
	provider.Serve("kubernetes", version.Version, schema, terraformMapping)
}
