/** The published data of the fleet, over a real HTTP server and a real Postgres, with validators. */
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { describeApi } from "#coordinator/open-api";
import { securityTxt } from "#coordinator/run/opt-outs/published";
import { DirectorySigner } from "#coordinator/run/opt-outs/published-routes";
import { seenSignature } from "../migrating-crawler/support/verify-signature.ts";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { faultsOf, type JsonSchema } from "../support/schema-check.ts";
import { seedWorld, worldNow } from "../support/seed-world.ts";
import { webServer, webSettings } from "../support/web-server.ts";

const keySetUrl = "https://crawl.example.org/.well-known/http-message-signatures-directory";
const paths = {
  addresses: "/about-crawler/addresses.json",
  keys: "/.well-known/http-message-signatures-directory",
  card: "/.well-known/signature-agent-card",
  security: "/.well-known/security.txt",
};

const database = await forThisFile(testDatabase());
/** Its clock stands still. */
let shared: Awaited<ReturnType<typeof published>>;
const cleanups: (() => unknown)[] = [];
let closeShared: (() => unknown) | undefined;
beforeAll(async () => {
  await seedWorld(database.pool);
  shared = await published();
  closeShared = cleanups.pop();
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});
afterAll(async () => await closeShared?.());

/** A coordinator that sites reach by https; `clock.now` is its time. */
async function published(settings: Partial<typeof webSettings> = {}) {
  const clock = { now: worldNow };
  const app = webServer(database, {
    now: () => clock.now,
    settings: { ...webSettings, signRequests: true, keySetUrl, ...settings },
  });
  cleanups.push(() => app.close());
  await app.listen({ host: "127.0.0.1", port: 0 });
  const base = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  const get = async (path: string, headers: Record<string, string> = {}) =>
    await fetch(base + path, { headers });
  const pass = (seconds: number) => {
    clock.now = new Date(clock.now.getTime() + seconds * 1000);
  };
  return { get, pass };
}

describe("a reader that returns for unchanged data", () => {
  it("gets a short answer", async () => {
    const { get } = await published();
    const maxAges: Record<string, unknown> = {};

    for (const [what, path] of Object.entries(paths)) {
      const first = await get(path);
      const etag = first.headers.get("etag") ?? "";
      const same = await get(path, { "if-none-match": `"other", ${etag}` });
      const other = await get(path, { "if-none-match": '"other"' });
      expect([what, first.status, same.status, other.status]).toEqual([what, 200, 304, 200]);
      expect([await same.text(), same.headers.get("etag")]).toEqual(["", etag]);
      expect(same.headers.get("content-digest")).toBeNull();
      maxAges[what] = same.headers.get("cache-control");
    }

    expect(maxAges).toEqual({
      addresses: "public, max-age=3600",
      keys: "public, max-age=300",
      card: "public, max-age=86400",
      security: "public, max-age=86400",
    });
  });

  it("gets the addresses once a day, and as soon as one comes or goes (JAFAR, section 3.1)", async () => {
    const { get, pass } = await published();
    const first = await get(paths.addresses);
    const etag = first.headers.get("etag") ?? "";
    const modified = first.headers.get("last-modified") ?? "";
    const { creationTime } = (await first.json()) as { creationTime: string };

    pass(6 * 3600);
    const sameDay = await get(paths.addresses, { "if-none-match": etag });
    const sameTime = await get(paths.addresses, { "if-modified-since": modified });
    const stillOf = ((await (await get(paths.addresses)).json()) as { creationTime: string }).creationTime;
    await database.pool.query("update crawler set seen_address = '9.9.9.99' where name = 'athens'");
    const changed = await get(paths.addresses, { "if-none-match": etag });
    pass(86_400);
    const nextDay = await get(paths.addresses, { "if-none-match": changed.headers.get("etag") ?? "" });

    expect([creationTime, stillOf]).toEqual(["2026-03-01T12:00:00Z", "2026-03-01T12:00:00Z"]);
    expect(modified).toBe("Sun, 01 Mar 2026 12:00:00 GMT");
    expect([sameDay.status, sameTime.status, changed.status, nextDay.status]).toEqual([304, 304, 200, 200]);
    expect(await changed.json()).toMatchObject({ creationTime: "2026-03-01T18:00:00Z" });
    expect(await nextDay.json()).toMatchObject({ creationTime: "2026-03-02T18:00:00Z" });
  });

  it.each(["not a date", "Sat, 01 Feb 2025 00:00:00 GMT"])(
    "gets the data again with If-Modified-Since %j",
    async (since) => {
      const answer = await shared.get(paths.addresses, { "if-modified-since": since });

      expect(answer.status).toBe(200);
    },
  );
});

describe("the signature of the key set", () => {
  const proven = async (answer: Response) => {
    const { keys } = (await answer.json()) as { keys: { kid: string; x: string }[] };
    const headers = Object.fromEntries(answer.headers);
    const requestAuthority = "crawl.example.org";
    const seen = { method: "GET", path: "", authority: "", requestAuthority, headers };
    const { parameters } = seenSignature(seen, "directory", keys[0]!.x);
    const key = keys.find(({ kid }) => kid === parameters.keyid);
    return { valid: key !== undefined && seenSignature(seen, "directory", key.x).valid, parameters, key };
  };

  it("is renewed before a copy of the answer can outlive it, and a 304 brings the new one", async () => {
    const { get, pass } = await published();
    const first = await get(paths.keys);
    const etag = first.headers.get("etag") ?? "";
    pass(299);
    const kept = await get(paths.keys);
    pass(2);

    const refreshed = await get(paths.keys, { "if-none-match": etag });
    const stored = new Response(await (await get(paths.keys)).text(), { headers: kept.headers });
    for (const name of ["signature", "signature-input"])
      stored.headers.set(name, refreshed.headers.get(name)!);
    const proof = await proven(stored);

    expect(kept.headers.get("signature")).toBe(first.headers.get("signature"));
    expect(refreshed.status).toBe(304);
    expect(refreshed.headers.get("signature")).not.toBe(kept.headers.get("signature"));
    expect(proof.valid).toBe(true);
    expect(Number(proof.parameters.expires) - Number(proof.parameters.created)).toBe(600);
    expect((await proven(kept)).valid).toBe(true);
  });

  it("is for the coordinator's own name, whatever name it is asked under", async () => {
    const answer = await shared.get(paths.keys, { host: "evil.example" });

    expect((await proven(answer)).valid).toBe(true);
  });

  it("is by a key that is replaced before it ends", () => {
    const signer = new DirectorySigner("crawl.example.org");
    const at = (days: number) => new Date(worldNow.getTime() + days * 86_400_000);
    const first = signer.key(at(0)).publicKey;
    const early = signer.key(at(5.9)).publicKey;
    const next = signer.key(at(6.1));

    expect(early).toBe(first);
    expect(next.publicKey).not.toBe(first);
    expect(next.until).toEqual(at(13.1));
  });

  it("is absent, and so is the coordinator's key, where requests are not signed", async () => {
    const { get } = await published({ signRequests: false });

    const answer = await get(paths.keys);

    expect(answer.headers.get("signature")).toBeNull();
    expect(await answer.json()).toEqual({ keys: [] });
  });
});

describe("the signature agent card (draft-meunier-webbotauth-registry-04)", () => {
  it("says who crawls, for what, how fast and by which keys, under the URL where it is", async () => {
    const answer = await shared.get(paths.card);
    const card = await answer.json();

    const schemas = (describeApi() as unknown as { components: { schemas: Record<string, JsonSchema> } })
      .components.schemas;
    expect(faultsOf(card, { $ref: "#/components/schemas/SignatureAgentCard" }, schemas)).toEqual([]);
    expect(answer.headers.get("content-type")).toBe("application/json");
    expect(card).toEqual({
      client_id: `https://crawl.example.org${paths.card}`,
      client_name: "Nearcrawl at crawl.example.org",
      client_uri: "https://crawl.example.org/about-crawler",
      contacts: ["mailto:crawl@example.org"],
      jwks_uri: keySetUrl,
      web_bot_auth: {
        "expected-user-agent": "Nearcrawl/0.1 (+https://crawl.example.org/about-crawler)*",
        "rfc9309-product-token": "Nearcrawl",
        "rfc9309-compliance": true,
        trigger: "crawler",
        purpose: "search",
        "targeted-content": "public web pages, feeds and sitemaps",
        "rate-control": "Crawl-delay in robots.txt; 429 or 503, with Retry-After",
        "rate-expectation": "max=1rps for each host, one request at a time",
        "known-urls": ["/robots.txt", "/.well-known/tdmrep.json"],
        ips_uri: `https://crawl.example.org${paths.addresses}`,
      },
    });
  });

  it("states the pace that is kept, and no keys where requests are not signed", async () => {
    const { get } = await published({ politenessSeconds: 4, signRequests: false, contact: null });

    const card = (await (await get(paths.card)).json()) as Record<string, Record<string, unknown>>;

    expect(card.web_bot_auth?.["rate-expectation"]).toBe("max=0.25rps for each host, one request at a time");
    expect(card).not.toHaveProperty("jwks_uri");
    expect(card).not.toHaveProperty("contacts");
  });

  it("is absent where sites cannot reach it by https: the answer names the setting", async () => {
    const { get } = await published({ keySetUrl: null });

    const answer = await get(paths.card);

    expect(answer.status).toBe(404);
    expect(await answer.text()).toMatch(/publicUrl in the coordinator's settings to an https URL\.\n$/);
  });
});

describe("security.txt (RFC 9116)", () => {
  it("names the contact, ends within a year, and says where it is", async () => {
    const { get } = await published({ contact: "mailto:crawl@example.org" });

    const answer = await get(paths.security);

    expect(answer.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(await answer.text()).toBe(
      [
        "Contact: mailto:crawl@example.org",
        "Expires: 2026-05-30T00:00:00Z",
        "Preferred-Languages: en",
        "Canonical: https://crawl.example.org/.well-known/security.txt",
        "",
      ].join("\n"),
    );
  });

  const at = (contact: string | null) => securityTxt({ ...webSettings, keySetUrl: null, contact }, worldNow);

  it.each([
    ["https://example.org/security", "Contact: https://example.org/security"],
    ["crawl@example.org", "Contact: mailto:crawl@example.org"],
  ])("accepts the contact %s", (contact, line) => {
    const text = String(at(contact));

    expect(text.split("\n")[0]).toBe(line);
    expect(text).not.toContain("Canonical");
  });

  it.each([
    [null, "no contact is set"],
    ["http://example.org/security", "neither an e-mail address nor an https URL"],
    ["crawl@example.org\nContact: mailto:evil@example.com", "neither an e-mail address nor an https URL"],
  ])("is absent for the contact %j", (contact, words) => {
    expect(at(contact)).toEqual({ missing: expect.stringContaining(words) });
  });

  it("is absent without a contact: the answer names the setting", async () => {
    const { get } = await published({ contact: null });

    const answer = await get(paths.security);

    expect(answer.status).toBe(404);
    expect(await answer.text()).toContain("sets contact in its settings");
  });
});
