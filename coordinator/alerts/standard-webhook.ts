/**
 * Standard Webhooks (standardwebhooks.com, version 1): what a message is signed with, and how. The signature is HMAC-SHA256
 * over `id.timestamp.body`, so that neither the time nor the message can be replaced; the id is the same at each attempt.
 */
import { createHmac } from "node:crypto";

const prefix = "whsec_";

/** Null: it is no secret of 24 to 64 bytes. */
export function secretBytes(secret: string): Buffer | null {
  const text = secret.startsWith(prefix) ? secret.slice(prefix.length) : "";
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return null;
  const bytes = Buffer.from(text, "base64");
  return bytes.length >= 24 && bytes.length <= 64 ? bytes : null;
}

export function webhookHeaders(
  { id, body }: { readonly id: string; readonly body: string },
  secret: Uint8Array,
  now: Date,
): Record<string, string> {
  const timestamp = String(Math.floor(now.getTime() / 1000));
  const signature = createHmac("sha256", secret).update(`${id}.${timestamp}.${body}`).digest("base64");
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${signature}`,
  };
}
