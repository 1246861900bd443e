"""Short-lived tokens of the simulated IAM: made by the `aws` on PATH, checked by the API server's webhook.

Needs nothing but the standard library, and starts fast: it runs whenever a kubeconfig is used.
"""

import base64
import hashlib
import hmac
import json
import secrets
import sys
import time
from pathlib import Path

ACCESS_KEY, SECRET_KEY = "REHEARSALNOTAKEY", "rehearsal-not-a-secret"
"""What the AWS SDKs sign with in a rehearsal: no real key looks like it, and no other is taken."""
PREFIX = "k8s-aws-v1."
LIFETIME_SECONDS = 15 * 60
"""As on EKS: https://docs.aws.amazon.com/eks/latest/best-practices/identity-and-access-management.html"""


def secret(state: Path) -> bytes:
    """The key that tokens of this rehearsal are signed with; made at the first use."""
    file = state / "token.key"
    if not file.exists():
        state.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        file.write_text(secrets.token_hex(32), "utf-8")
    return file.read_text("utf-8").encode()


def make_token(state: Path, cluster: str, now: float) -> str:
    """A token for one cluster."""
    claims = json.dumps({"cluster": cluster, "until": now + LIFETIME_SECONDS, "user": "rehearsal"}).encode()
    mark = hmac.new(secret(state), claims, hashlib.sha256).digest()
    return PREFIX + base64.urlsafe_b64encode(mark + claims).decode().rstrip("=")


def check_token(state: Path, token: str, cluster: str, now: float) -> str | None:
    """The user of a token that is good for the cluster now; None for any other."""
    if not token.startswith(PREFIX):
        return None
    body = token.removeprefix(PREFIX)
    try:
        raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
        mark, claims = raw[:32], raw[32:]
        if not hmac.compare_digest(mark, hmac.new(secret(state), claims, hashlib.sha256).digest()):
            return None
        fields = json.loads(claims)
        good = fields["cluster"] == cluster and now < fields["until"]
        return str(fields["user"]) if good else None
    except (ValueError, KeyError):
        return None


def main(arguments: list[str]) -> int:
    """`aws eks get-token --cluster-name NAME [--region R] [--output json]`, and nothing else."""
    state, words = Path(arguments[0]), arguments[1:]
    if words[:2] != ["eks", "get-token"] or "--cluster-name" not in words[:-1]:
        print("\naws: [ERROR]: the rehearsal's aws knows `eks get-token --cluster-name NAME` only", file=sys.stderr)
        return 252
    now = time.time()
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + LIFETIME_SECONDS))
    token = make_token(state, words[words.index("--cluster-name") + 1], now)
    credential = {
        "kind": "ExecCredential",
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "spec": {},
        "status": {"expirationTimestamp": until, "token": token},
    }
    print(json.dumps(credential))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
