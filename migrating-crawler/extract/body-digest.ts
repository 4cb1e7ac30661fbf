/** A body's identity: SHA-256 of its bytes, content codings undone, in hex. */
import { createHash } from "node:crypto";

export function bodyDigest(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
