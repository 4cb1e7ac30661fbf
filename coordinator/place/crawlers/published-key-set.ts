/** Where sites find the fleet's signing keys. */
import { keySetUrlAt } from "#protocol/identity";
import { contactPageOf } from "#protocol/user-agent";

/** The public URL of the key set; null without https, which verifiers require. */
export function publishedKeySet({
  publicUrl,
  userAgent,
}: {
  readonly userAgent: string;
  readonly publicUrl: string | null;
}): string | null {
  const coordinator = publicUrl === null ? contactPageOf(userAgent) : new URL(publicUrl);
  return coordinator && keySetUrlAt(coordinator);
}
