/**
 * A site verifies a crawler's requests by draft-ietf-webbotauth-httpsig-protocol-01 (October 2026) with no other
 * knowledge of us: from the header fields to the key set that they name, over TLS, and back. The coordinator is
 * complete, and the crawler runs from a joined folder.
 */
import { createHash } from "node:crypto";
import https from "node:https";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFrontierStore } from "#coordinator/crawl/frontier/frontier-store";
import { createFleetKeys } from "#coordinator/place/crawlers/identity-store";
import { type CrawlerLog, quietLog } from "#crawler/core/log";
import { startCrawler } from "#crawler/main";
import { homeSettings } from "#crawler/membership/home-folder";
import { pinOf } from "#protocol/identity";
import { formatInvitation } from "#protocol/invitation";
import { type JoiningWorld, newJoiningWorld } from "../../gateway/joining-world.ts";
import { seeds } from "../../support/store-world.ts";
import { until } from "../../support/until.ts";
import { html } from "../support/origin.ts";
import { type PartnerConsole, partnerConsole } from "../support/partner-console.ts";
import { makeCertificate, startHttps1Origin, type TestCertificate } from "../support/secure-origin.ts";
import { type SignedMessage, seenSignature, thumbprint } from "../support/verify-signature.ts";

const keySetUrl = "https://crawl.example.org/.well-known/http-message-signatures-directory";
const directoryType = "application/http-message-signatures-directory+json";
const soonMs = 20_000;

interface KeySetAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}
let world: JoiningWorld;
let partner: PartnerConsole;
let certificate: TestCertificate;
let site: Awaited<ReturnType<typeof startHttps1Origin>>;
/** A request while the key is still unknown to verifiers, and a later one. */
let early: SignedMessage;
let message: SignedMessage;

/** Reads a URL from the coordinator regardless of its host, over TLS and without redirects. */
const fromCoordinator = async (url: string): Promise<KeySetAnswer> => {
  const { host, pathname, search } = new URL(url);
  const { hostname, port } = new URL(world.url);
  return await new Promise((resolve, reject) => {
    const to = { hostname, port, path: pathname + search, headers: { host }, ca: world.trusting.ca };
    const request = https.get({ ...to, checkServerIdentity: () => undefined }, async (answer) => {
      let body = "";
      for await (const chunk of answer) body += chunk;
      resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body });
    });
    request.on("error", reject);
  });
};

/** The site's range, delegated to athens, and its pages; the host has a known address. */
async function seedSite(): Promise<void> {
  await world.rows("insert into registry_generation (state, applied_at) values ('applied', now())");
  await world.rows(
    "insert into subnet (first_address, last_address, registry, name, added_in) values ('127.0.0.0', '127.0.0.255', 'iana', 'LOOPBACK', 1)",
  );
  await world.rows(
    `insert into delegation (subnet_id, crawler_id, cause, measured, delegated_at)
     select s.subnet_id, c.crawler_id, 'operator', false, now() from subnet s, crawler c`,
  );
  await admit("/early");
}

const admit = async (path: string) =>
  await createFrontierStore(world.pool).admit(
    seeds(`${site.url}${path}`),
    { pagesPerHost: 100, maxDepth: 8, admitNewHosts: true },
    new Date(),
  );

async function fetched(path: string): Promise<SignedMessage> {
  await until(() => site.requests.includes(`GET ${path}`), soonMs);
  const headers = site.headers[site.requests.indexOf(`GET ${path}`)]!;
  return { method: "GET", path, authority: `127.0.0.1:${site.port}`, headers };
}

/** Fetches a page when its key was just published, and another when caches have the key. */
async function crawl(): Promise<void> {
  const settings = { allowRanges: ["127.0.0.0/8"], certificateFile: certificate.file, politenessFloorMs: 0 };
  let published = 0;
  const log: CrawlerLog = {
    ...quietLog,
    info: (_fields, words) => {
      if (words.includes("publishes a signing key")) published += 1;
    },
  };
  const crawlerConfig = { ...homeSettings(partner.home), ...settings };
  let crawler = await startCrawler(crawlerConfig, { log });
  await until(() => published === 1, soonMs);
  early = await fetched("/early");
  await world.rows("update crawler_signing_key set announced_at = announced_at - interval '301 seconds'");
  // Each session announces the key again.
  await crawler.stop();
  crawler = await startCrawler(crawlerConfig, { log });
  await until(() => published === 2, soonMs);
  await admit("/page");
  message = await fetched("/page");
  await crawler.stop();
}

beforeAll(async () => {
  certificate = makeCertificate();
  site = await startHttps1Origin(certificate, (request, response) =>
    request.url === "/robots.txt" ? void response.writeHead(404).end() : html(response, "<p>page"),
  );
  world = await newJoiningWorld({
    ...{ publicUrl: "https://crawl.example.org", contact: "crawl@example.org", signRequests: true },
    allowSpecialPurpose: ["127.0.0.0/8"],
  });
  partner = partnerConsole();
  // Partners reach the coordinator at another address than sites.
  const there = { coordinatorUrl: world.url, certificatePin: pinOf(world.trusting.ca) };
  const { code, text } = await partner.run(
    "join",
    formatInvitation({ ...(await world.invite("athens")), ...there }),
  );
  if (code !== 0) throw new Error(text);
  await world.startOver(seedSite);
  await crawl();
}, 120_000);
afterAll(async () => {
  await world?.close();
  await site?.close();
  certificate?.remove();
});

/**
 * Reads a dictionary's plain string members (RFC 9651 sections 3.2 and 3.3.3). Undefined for an invalid field; other
 * members and ones with parameters are left out (section "Signature-Agent").
 */
function stringMembers(field: string): Map<string, string> | undefined {
  const members = new Map<string, string>();
  const member = /\s*([a-z*][a-z0-9_.*-]*)=("(?:[ !#-[\]-~]|\\["\\])*")((?:;[^,;]+)*)\s*(?:,|$)/y;
  while (member.lastIndex < field.length) {
    const [, key = "", value = "", parameters] = member.exec(field) ?? [];
    if (parameters === undefined) return undefined;
    if (parameters === "") members.set(key, value.slice(1, -1).replace(/\\(.)/g, "$1"));
  }
  return members;
}

type Jwk = Readonly<Record<string, unknown>>;

const labelOf = ({ headers }: Pick<SignedMessage, "headers">) =>
  /^([a-z*][a-z0-9_.*-]*)=\(/.exec(String(headers["signature-input"]))?.[1];

const firstFault = (faults: readonly (readonly [isFault: boolean, words: string])[]) =>
  faults.find(([isFault]) => isFault)?.[1];

/** Returns the identifier to which the request is attributed, or why none. */
async function verifiedIdentity(
  seen: SignedMessage,
): Promise<{ readonly identifier: string; readonly key: Jwk } | { readonly refused: string }> {
  const label = labelOf(seen);
  if (label === undefined) return { refused: "no signature" };
  const agent = stringMembers(String(seen.headers["signature-agent"]))?.get(label);
  if (agent === undefined)
    return { refused: "Signature-Agent is no dictionary with a string for this signature" };
  const { covered, parameters } = seenSignature(seen, label, Buffer.alloc(32).toString("base64url"));
  const [created, expires] = [Number(parameters.created), Number(parameters.expires)];
  const nowSeconds = Date.now() / 1000;
  const fault = firstFault([
    [!covered.includes(`"signature-agent";key="${label}"`), "Signature-Agent is not covered"],
    [!covered.includes('"@authority"') && !covered.includes('"@target-uri"'), "no target"],
    [parameters.tag !== "web-bot-auth", "another tag"],
    // Allows a second for clock differences.
    [!(created <= nowSeconds + 1 && nowSeconds < expires), "not of now"],
    [expires - created > 86_400, "valid for longer than a day"],
    [!agent.startsWith("https://"), `${agent} is no https URL`],
  ]);
  if (fault !== undefined) return { refused: fault };

  const keys = await keySet(agent);
  if (typeof keys === "string") return { refused: keys };
  const key = keys.find(
    ({ kty, crv, x }) => kty === "OKP" && crv === "Ed25519" && thumbprint(String(x)) === parameters.keyid,
  );
  if (key === undefined) return { refused: `${agent} has no key ${parameters.keyid}` };
  // The key's validity period (section "Directory Format").
  if (typeof key.nbf === "number" && created < key.nbf) return { refused: "signed before its key was good" };
  if (typeof key.exp === "number" && expires > key.exp) return { refused: "good for longer than its key" };
  if (!seenSignature(seen, label, String(key.x)).valid) return { refused: "wrong signature" };
  const { origin, pathname } = new URL(agent);
  return { identifier: origin + pathname, key };
}

/** Section "Key Distribution and Discovery"; returns the reason for an invalid set. */
async function keySet(url: string): Promise<readonly Jwk[] | string> {
  const answer = await fromCoordinator(url);
  if (answer.status !== 200) return `${url} answers ${answer.status}`;
  const type = answer.headers["content-type"];
  if (type !== directoryType) return `${url} is served as ${type}`;
  let keys: Jwk[];
  try {
    keys = (JSON.parse(answer.body) as { keys: Jwk[] }).keys;
  } catch {
    return `${url} is no key set`;
  }
  if (keys.some((key) => key.kid !== undefined && key.kid !== thumbprint(String(key.x))))
    return "a kid that is no thumbprint";
  return keys;
}

/** Appendix "Validating the Domain Binding": checks that a key in the answer has signed it for this authority. */
function directoryProof({ headers, body }: KeySetAnswer, requestAuthority: string, now = Date.now()): string {
  const label = labelOf({ headers });
  if (label === undefined) return "no proof";
  const answered: SignedMessage = { method: "GET", path: "", authority: "", headers, requestAuthority };
  const keys = (JSON.parse(body) as { keys: Jwk[] }).keys;
  const { parameters, covered } = seenSignature(answered, label, String(keys[0]?.x));
  const digest = createHash("sha256").update(body).digest("base64");
  const [created, expires] = [Number(parameters.created), Number(parameters.expires)];
  const key = keys.find(({ kid }) => kid === parameters.keyid);
  const fault = firstFault([
    [parameters.tag !== "http-message-signatures-directory", "another tag"],
    [!covered.includes('"@authority";req'), "the authority is not covered"],
    [!covered.includes('"content-digest"'), "the body is not covered"],
    [headers["content-digest"] !== `sha-256=:${digest}:`, "another body"],
    [created > now / 1000 || expires <= now / 1000, "not of now"],
    [key === undefined, "an unknown key"],
    [Number(key?.exp) < expires, "good for longer than its key"],
    [!seenSignature(answered, label, String(key?.x ?? keys[0]?.x)).valid, "wrong signature"],
  ]);
  return fault ?? "proven";
}

describe("a site that verifies the crawlers' requests", () => {
  it("finds the key set at the URL in Signature-Agent and verifies the signature by a key used for nothing else", async () => {
    const verified = await verifiedIdentity(message);

    expect(verified).toMatchObject({ identifier: keySetUrl });
    const { key } = verified as { key: Jwk };
    const [{ public_key: identity } = {}] = await world.rows("select public_key from crawler");
    expect(key.x).not.toBe(identity);
    expect(Object.keys(key)).toEqual(["kty", "crv", "kid", "x", "use", "nbf", "exp"]);
    // The key set has that key and the coordinator's own, which signs no request.
    expect(await keySet(keySetUrl)).toHaveLength(2);
  });

  it("saw no signature before cached key sets could have the key", () => {
    expect(Object.keys(early.headers).filter((name) => name.startsWith("signature"))).toEqual([]);
    expect(early.headers["user-agent"]).toMatch(/^Nearcrawl\//);
  });

  it("can verify that the key set belongs to the coordinator's name", async () => {
    const answer = await fromCoordinator(keySetUrl);
    const elsewhere = await fromCoordinator(keySetUrl.replace("crawl.example.org", "evil.example"));

    expect(directoryProof(answer, "crawl.example.org")).toBe("proven");
    expect(directoryProof(answer, "evil.example")).toBe("wrong signature");
    expect(directoryProof(elsewhere, "evil.example")).toBe("wrong signature");
    expect(
      directoryProof({ ...answer, body: answer.body.replace('"sig"', '"sog"') }, "crawl.example.org"),
    ).toBe("another body");
    expect(directoryProof(answer, "crawl.example.org", Date.now() + 601_000)).toBe("not of now");
  });

  it("no longer finds the key of a revoked crawler", async () => {
    await createFleetKeys(world.pool).revoke("athens", new Date());

    expect(await verifiedIdentity(message)).toEqual({
      refused: expect.stringContaining("has no key"),
    });
  });
});
