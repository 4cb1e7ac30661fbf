/**
 * The data that the coordinator publishes about who sends its requests: addresses (draft-illyes-webbotauth-jafar-00,
 * April 2026), keys (draft-ietf-webbotauth-httpsig-protocol-01, October 2026), the signature agent card
 * (draft-meunier-webbotauth-registry-04, October 2026) and security.txt (RFC 9116).
 */
import { canParseUrl } from "#core/ip/url-host";
import { keyThumbprint } from "#protocol/identity";
import { productToken } from "#protocol/user-agent";
import type { PublicKey } from "../../place/crawlers/public-list-reads.ts";

export interface PublishedSettings {
  readonly userAgent: string;
  /** An e-mail address or URL; null if the operator states none. */
  readonly contact: string | null;
  /** Minimum seconds between two requests to a host. */
  readonly politenessSeconds: number | null;
  readonly signRequests?: boolean;
  /** The https URL for sites; null or absent if they cannot reach it. */
  readonly keySetUrl?: string | null;
}

export const publishedPaths = {
  addresses: "/about-crawler/addresses.json",
  keys: "/.well-known/http-message-signatures-directory",
  card: "/.well-known/signature-agent-card",
  security: "/.well-known/security.txt",
} as const;

const secondsOf = (time: Date) => Math.floor(time.getTime() / 1000);

/** RFC 7517 and RFC 8037. An identity, with which older crawlers sign, has no `nbf` and `exp`. */
export function jwkOf({ publicKey: x, from, until }: PublicKey): object {
  const times = from === null || until === null ? {} : { nbf: secondsOf(from), exp: secondsOf(until) };
  return { kty: "OKP", crv: "Ed25519", kid: keyThumbprint(x), x, use: "sig", ...times };
}

export function prefixesOf(addresses: readonly string[]): object[] {
  return addresses.map((address) =>
    address.includes(":") ? { ipv6Prefix: `${address}/128` } : { ipv4Prefix: `${address}/32` },
  );
}

/** Why the data is not published, and which setting is missing. */
export interface NotPublished {
  readonly missing: string;
}

/** The card names its own https URL (`client_id`). It has no keys if requests are not signed. */
export function signatureAgentCard(settings: PublishedSettings): object | NotPublished {
  const { keySetUrl = null, userAgent, contact, politenessSeconds, signRequests } = settings;
  if (keySetUrl === null) {
    return {
      missing:
        "There is no signature agent card: it is found by https alone. Its operator sets publicUrl in the coordinator's settings to an https URL.",
    };
  }
  const { origin, host } = new URL(keySetUrl);
  const product = productToken(userAgent);
  const uri = contact === null ? null : contactUri(contact);
  return {
    client_id: origin + publishedPaths.card,
    client_name: `${product} at ${host}`,
    client_uri: `${origin}/about-crawler`,
    ...(uri === null ? {} : { contacts: [uri] }),
    ...(signRequests ? { jwks_uri: keySetUrl } : {}),
    web_bot_auth: {
      // The contact of a partner may follow.
      "expected-user-agent": `${userAgent}*`,
      "rfc9309-product-token": product,
      "rfc9309-compliance": true,
      trigger: "crawler",
      purpose: "search",
      "targeted-content": "public web pages, feeds and sitemaps",
      "rate-control": "Crawl-delay in robots.txt; 429 or 503, with Retry-After",
      ...(politenessSeconds === null ? {} : { "rate-expectation": rateWords(politenessSeconds) }),
      "known-urls": ["/robots.txt", "/.well-known/tdmrep.json"],
      ips_uri: origin + publishedPaths.addresses,
    },
  };
}

function rateWords(politenessSeconds: number): string {
  const perSecond = Math.round(1000 / politenessSeconds) / 1000;
  return `max=${perSecond}rps for each host, one request at a time`;
}

/** The contact as a URI for both formats; null if it is neither a mailbox nor an https page. */
function contactUri(contact: string): string | null {
  const mailbox = contact.replace(/^mailto:/, "");
  if (/^[!#-'*+\-./0-9=?A-Z^-~]+@[A-Za-z0-9.-]+$/.test(mailbox)) return `mailto:${mailbox}`;
  return /^https:\/\/[!-~]+$/.test(contact) && canParseUrl(contact) ? contact : null;
}

const dayMs = 86_400_000;

/** RFC 9116 section 2.5.5: less than a year ahead. Every answer has a new date. */
const securityDays = 90;

export function securityTxt(settings: PublishedSettings, now: Date): string | NotPublished {
  const { contact, keySetUrl = null } = settings;
  const uri = contact === null ? null : contactUri(contact);
  if (uri === null) {
    const fault =
      contact === null ? "no contact is set" : "its contact is neither an e-mail address nor an https URL";
    return {
      missing: `There is no security.txt, since ${fault}. The operator of this coordinator sets contact in its settings.`,
    };
  }
  const expires = new Date(startOfDay(now).getTime() + securityDays * dayMs);
  const lines = [
    `Contact: ${uri}`,
    `Expires: ${expires.toISOString().slice(0, 19)}Z`,
    "Preferred-Languages: en",
    ...(keySetUrl === null ? [] : [`Canonical: ${new URL(keySetUrl).origin}${publishedPaths.security}`]),
  ];
  return `${lines.join("\n")}\n`;
}

export const startOfDay = (now: Date) => new Date(Math.floor(now.getTime() / dayMs) * dayMs);
