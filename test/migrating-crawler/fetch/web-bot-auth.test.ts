/**
 * A site verifies a crawler's requests as draft-ietf-webbotauth-httpsig-protocol-01 (October 2026) has it, and knows
 * nothing else of us: from the request's header fields to the key set that they name, over TLS, and back.
 */
import https from "node:https";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { crawlSlice } from "#crawler/crawl/crawl-slice";
import { closeTools, fetchTools } from "#crawler/crawl/slice-tools";
import { Introduction } from "#crawler/fetch/user-agent";
import { type JoiningWorld, newJoiningWorld } from "../../gateway/joining-world.ts";
import { html, startOrigin } from "../support/origin.ts";
import { testConfig } from "../support/test-config.ts";
import { type SignedMessage, seenSignature, thumbprint } from "../support/verify-signature.ts";

let world: JoiningWorld;
beforeAll(async () => {
  world = await newJoiningWorld({ publicUrl: "https://crawl.example.org", signRequests: true });
});
afterEach(async () => await world.reset());
afterAll(async () => await world?.close());

const keySetUrl = "https://crawl.example.org/.well-known/http-message-signatures-directory";

interface KeySetAnswer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}
type FetchKeySet = (url: string) => Promise<KeySetAnswer>;

/** What stands at a URL of the coordinator, whatever the URL's host: over TLS, without following a redirect. */
const fromCoordinator: FetchKeySet = async (url) => {
  const { host, pathname, search } = new URL(url);
  const { hostname, port } = new URL(world.url);
  return await new Promise((resolve, reject) => {
    const to = { hostname, port, path: pathname + search, headers: { host }, ca: world.trusting.ca };
    const request = https.get({ ...to, checkServerIdentity: () => undefined }, async (answer) => {
      let body = "";
      for await (const chunk of answer) body += chunk;
      resolve({ status: answer.statusCode ?? 0, type: answer.headers["content-type"] ?? "", body });
    });
    request.on("error", reject);
  });
};

/**
 * Members of a dictionary whose values are plain strings (RFC 9651 sections 3.2 and 3.3.3). Undefined where the field
 * is none; a member that is no string, or carries parameters, is left out, as section "Signature-Agent" says.
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

/** The identifier that the request is attributed to, or why to none. */
async function verifiedIdentity(
  message: SignedMessage,
  fetchKeySet: FetchKeySet,
  now = Date.now(),
): Promise<{ readonly identifier: string } | { readonly refused: string }> {
  const label = /^([a-z*][a-z0-9_.*-]*)=\(/.exec(String(message.headers["signature-input"]))?.[1];
  if (label === undefined) return { refused: "no signature" };
  const agent = stringMembers(String(message.headers["signature-agent"]))?.get(label);
  if (agent === undefined)
    return { refused: "Signature-Agent is no dictionary with a string for this signature" };
  const { covered, parameters } = seenSignature(message, label, Buffer.alloc(32).toString("base64url"));
  if (!covered.includes(`"signature-agent";key="${label}"`))
    return { refused: "Signature-Agent is not covered" };
  if (!covered.includes('"@authority"') && !covered.includes('"@target-uri"'))
    return { refused: "no target" };
  if (parameters.tag !== "web-bot-auth") return { refused: "another tag" };
  const [created, expires] = [Number(parameters.created), Number(parameters.expires)];
  // A second for clocks.
  if (!(created <= now / 1000 + 1 && now / 1000 < expires)) return { refused: "not of now" };
  if (expires - created > 86_400) return { refused: "valid for longer than a day" };
  if (!agent.startsWith("https://")) return { refused: `${agent} is no https URL` };

  const answer = await fetchKeySet(agent);
  if (answer.status !== 200) return { refused: `${agent} answers ${answer.status}` };
  const isWellKnown = new URL(agent).pathname === "/.well-known/http-message-signatures-directory";
  if (isWellKnown && answer.type !== "application/http-message-signatures-directory+json") {
    return { refused: `${agent} is served as ${answer.type}` };
  }
  let keys: Record<string, unknown>[];
  try {
    keys = (JSON.parse(answer.body) as { keys: Record<string, unknown>[] }).keys;
  } catch {
    return { refused: `${agent} is no key set` };
  }
  if (isWellKnown && keys.some((key) => key.kid !== undefined && key.kid !== thumbprint(String(key.x)))) {
    return { refused: "a kid that is no thumbprint" };
  }
  const key = keys.find(
    ({ kty, crv, x }) => kty === "OKP" && crv === "Ed25519" && thumbprint(String(x)) === parameters.keyid,
  );
  if (key === undefined) return { refused: `${agent} has no key ${parameters.keyid}` };
  if (!seenSignature(message, label, String(key.x)).valid) return { refused: "wrong signature" };
  const { origin, pathname } = new URL(agent);
  return { identifier: origin + pathname };
}

/** A crawler that joins the coordinator, is welcomed, and fetches one page: what the site saw of that. */
async function seenAtSite(
  welcomed: (welcome: { signatureAgent?: string | undefined }) => object = (same) => same,
) {
  const folder = await world.joined("athens");
  const { crawler, welcome } = await world.come(folder);
  const introduction = new Introduction(folder.identity);
  introduction.onWelcome({ ...welcome!, ...welcomed(welcome!) });
  await world.leave(crawler, "athens");
  const origin = await startOrigin((_request, response) => html(response, "<p>page"));
  const config = testConfig();
  const { userAgent, sign } = introduction;
  const tools = fetchTools({ config, home: config.home, userAgent, sign, quiet: async () => {} });
  const urls = [{ url: `${origin.url}/a`, etag: null, lastModified: null }];
  const lease = { leaseId: "1", host: "127.0.0.1", addresses: [], expiresInSeconds: 60, waitMs: 0, urls };
  await crawlSlice(lease, { ...tools, keep: () => true }, new AbortController().signal);
  await closeTools(tools);
  await origin.close();
  const message: SignedMessage = {
    method: "GET",
    path: "/a",
    authority: `127.0.0.1:${origin.port}`,
    headers: origin.headers.at(-1)!,
  };
  return { message, welcome };
}

describe("a site that verifies what the coordinator's crawlers ask", () => {
  it("finds the key set at the very URL that Signature-Agent names, and the signature good", async () => {
    const { message, welcome } = await seenAtSite();

    expect(await verifiedIdentity(message, fromCoordinator)).toEqual({ identifier: keySetUrl });
    expect(welcome?.signatureAgent).toBe(keySetUrl);
  });

  it("and so with a coordinator of the version before, which states the key set's origin alone", async () => {
    const { message } = await seenAtSite(() => ({ signatureAgent: "https://crawl.example.org" }));

    expect(await verifiedIdentity(message, fromCoordinator)).toEqual({ identifier: keySetUrl });
  });

  it("sees no signature where the key set is not to be had by https, for no verifier could take it", async () => {
    const { message } = await seenAtSite(() => ({ signatureAgent: "http://crawl.example.org" }));

    expect(Object.keys(message.headers).filter((name) => name.startsWith("signature"))).toEqual([]);
  });
});

describe("the verification that this file uses", () => {
  it("does not take a request for another site, a changed header, an old one, nor a key set that lacks the key", async () => {
    const { message } = await seenAtSite();
    const { headers } = message;
    const changed = (from: RegExp, to: string) => ({
      ...message,
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name, String(value).replace(from, to)]),
      ),
    });
    const answering =
      (answer: Partial<KeySetAnswer>): FetchKeySet =>
      async (url) => ({
        ...(await fromCoordinator(url)),
        ...answer,
      });

    const refusals = await Promise.all([
      verifiedIdentity({ ...message, authority: "other.example" }, fromCoordinator),
      verifiedIdentity(changed(/crawl\.example\.org/, "evil.example"), fromCoordinator),
      verifiedIdentity(changed(/(crawl\.example\.org[^"]*")/, "$1;a=1"), fromCoordinator),
      verifiedIdentity(changed(/^sig1="https:/, 'sig1="http:'), fromCoordinator),
      verifiedIdentity(message, fromCoordinator, Date.now() + 3_600_000),
      verifiedIdentity(message, answering({ status: 302 })),
      verifiedIdentity(message, answering({ type: "application/json" })),
      verifiedIdentity(message, answering({ body: '{"keys":[]}' })),
    ]);

    expect(refusals.map((refusal) => ("refused" in refusal ? refusal.refused : "taken"))).toEqual([
      "wrong signature",
      "wrong signature",
      "Signature-Agent is no dictionary with a string for this signature",
      expect.stringContaining("is no https URL"),
      "not of now",
      `${keySetUrl} answers 302`,
      `${keySetUrl} is served as application/json`,
      expect.stringContaining("has no key"),
    ]);
  });
});
