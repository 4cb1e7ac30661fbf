/**
 * Verifies an HTTP message signature like a site, written only from RFC 9421 (sections 2.2, 2.3, 2.5 and 3.2) and RFC
 * 8941.
 */
import { createHash, createPublicKey, verify } from "node:crypto";

export interface SignedMessage {
  readonly method: string;
  readonly path: string;
  readonly authority: string;
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** For an answer, the authority of its request (RFC 9421 section 2.4). */
  readonly requestAuthority?: string;
}

export interface SeenSignature {
  readonly valid: boolean;
  readonly covered: readonly string[];
  readonly parameters: Readonly<Record<string, string>>;
}

/** `x` is 32 bytes in base64url. Throws when the message has no signature with that label. */
export function seenSignature(message: SignedMessage, label: string, x: string): SeenSignature {
  const input = member(String(message.headers["signature-input"]), label);
  const signature = /^:([A-Za-z0-9+/=]+):$/.exec(member(String(message.headers.signature), label))![1]!;
  const [, list = "", rest = ""] = /^\((.*?)\)(.*)$/.exec(input)!;
  const covered = list.split(" ");
  const lines = covered.map((component) => `${component}: ${componentValue(message, component)}`);
  const base = [...lines, `"@signature-params": ${input}`].join("\n");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  return {
    valid: verify(null, Buffer.from(base), key, Buffer.from(signature, "base64")),
    covered,
    parameters: Object.fromEntries(
      [...rest.matchAll(/;([a-z]+)=("[^"]*"|\d+)/g)].map(([, name, value]) => [
        name,
        value!.replaceAll('"', ""),
      ]),
    ),
  };
}

/** RFC 7638 over the members that RFC 8037 section 2 requires, in the order of their names. */
export function thumbprint(x: string): string {
  return createHash("sha256").update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).digest("base64url");
}

function componentValue(message: SignedMessage, component: string): string {
  if (component === '"@authority";req') return message.requestAuthority ?? "";
  const [, name = "", key] = /^"([^"]+)"(?:;key="([^"]+)")?$/.exec(component)!;
  if (name === "@method") return message.method;
  if (name === "@path") return message.path;
  if (name === "@authority") return message.authority;
  const field = [message.headers[name] ?? []]
    .flat()
    .map((value) => value.trim())
    .join(", ");
  return key === undefined ? field : member(field, key);
}

/** Reads a dictionary whose strings contain no commas. */
function member(dictionary: string, name: string): string {
  const found = dictionary.split(/,\s*/).find((one) => one.startsWith(`${name}=`));
  if (found === undefined) throw new Error(`no member ${name} in ${dictionary}`);
  return found.slice(name.length + 1);
}
