import { describe, expect, it } from "vitest";
import { crawlSlice } from "#crawler/crawl/crawl-slice";
import { closeTools, fetchTools } from "#crawler/crawl/slice-tools";
import { Introduction, requestSigner } from "#crawler/fetch/sign-request";
import { openIdentity } from "#crawler/membership/identity";
import type { RequestKey } from "#crawler/membership/signing-keys";
import { Prober } from "#crawler/probe/prober";
import { atEnd } from "../../support/at-end.ts";
import { html, startOrigin } from "../support/origin.ts";
import { makeCertificate, startHttp2Origin, startHttps1Origin } from "../support/secure-origin.ts";
import { testConfig } from "../support/test-config.ts";
import { type SignedMessage, seenSignature, thumbprint } from "../support/verify-signature.ts";

const keySetUrl = "https://crawl.example.org/.well-known/http-message-signatures-directory";

const now = () => new Date("2026-03-01T12:00:00.900Z");
const zeroKey: RequestKey = {
  publicKey: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
  sign: () => Buffer.alloc(64).toString("base64url"),
  until: null,
};
const loopback = { host: "127.0.0.1", address: "127.0.0.1" };
const headProbe = { ...loopback, method: "head", tries: 1, deadlineMs: 2000 } as const;
const isSignatureField = (name: string) => name.startsWith("signature");

async function secureOrigin() {
  const certificate = makeCertificate();
  atEnd(() => certificate.remove());
  const origin = await startHttps1Origin(certificate, (request, response) =>
    request.url === "/robots.txt" ? void response.writeHead(404).end() : html(response, "<p>page"),
  );
  return { origin, certificate };
}

/** A crawler's tools after a welcome that asks for signatures, and its public key. */
function signingTools(changes: Parameters<typeof testConfig>[0] = {}) {
  const config = testConfig(changes);
  const identity = openIdentity(config.home);
  const introduction = new Introduction(identity);
  introduction.onWelcome(welcome);
  return { ...toolsOf(introduction, config), introduction, publicKey: identity.publicKey };
}

const welcome = { userAgent: "Nearcrawl/7 (+https://crawl.example.org/)", signatureAgent: keySetUrl };

function toolsOf({ userAgent, sign }: Introduction, config = testConfig()) {
  const tools = fetchTools({ config, home: config.home, userAgent, sign, quiet: async () => {} });
  atEnd(() => closeTools(tools));
  const crawl = async (url: string) => {
    const urls = [{ url, etag: null, lastModified: null }];
    const lease = { leaseId: "1", host: "127.0.0.1", addresses: [], expiresInSeconds: 60, waitMs: 0, urls };
    return await crawlSlice(lease, { ...tools, keep: () => true }, new AbortController().signal);
  };
  return { tools, crawl };
}

describe("the verification in these tests", () => {
  /** RFC 9421 appendix B.1.4 (the public key) and B.2.6. */
  const vector: SignedMessage = {
    method: "POST",
    path: "/foo",
    authority: "example.com",
    headers: {
      date: "Tue, 20 Apr 2021 02:07:55 GMT",
      "content-type": "application/json",
      "content-length": "18",
      "signature-input":
        'sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"',
      signature:
        "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:",
    },
  };
  const x = "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs";

  it("accepts the RFC's example and nothing that differs from it", () => {
    expect(seenSignature(vector, "sig-b26", x).valid).toBe(true);
    expect(seenSignature({ ...vector, authority: "example.net" }, "sig-b26", x).valid).toBe(false);
  });
});

describe("a signed request", () => {
  it("has the fields of Web Bot Auth and names the key by its thumbprint (RFC 8037 appendix A.3)", () => {
    const sign = requestSigner({ key: () => zeroKey, keySetUrl, now, random: (n) => Buffer.alloc(n) });

    const fields = sign(new URL("https://a.example/page"));

    const zeros = Buffer.alloc(64).toString("base64");
    expect(fields).toEqual({
      "signature-agent": 'sig1="https://crawl.example.org/.well-known/http-message-signatures-directory"',
      "signature-input":
        'sig1=("@authority" "signature-agent";key="sig1");created=1772366400;expires=1772366700;' +
        `keyid="kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";alg="ed25519";nonce="${zeros}";tag="web-bot-auth"`,
      signature: `sig1=:${zeros}:`,
    });
  });

  it.each([
    ["for the usual validity", 900, 300],
    ["no longer than its key", 120, 120],
  ])("is good %s", (_how, keySeconds, seconds) => {
    const until = new Date(now().getTime() + keySeconds * 1000);
    const sign = requestSigner({ key: () => ({ ...zeroKey, until }), keySetUrl, now });

    const [, created, expires] = /created=(\d+);expires=(\d+)/.exec(
      sign(new URL("https://a.example"))["signature-input"]!,
    )!;

    expect(Number(expires) - Number(created)).toBe(seconds);
    expect(Number(expires) * 1000).toBeLessThanOrEqual(until.getTime());
  });

  it("is not signed with an expiring key, without a key, or over plain http", () => {
    const until = new Date(now().getTime() + 20_000);
    const signWith = (key: RequestKey | null, url: string) =>
      requestSigner({ key: () => key, keySetUrl, now })(new URL(url));

    expect(signWith({ ...zeroKey, until }, "https://a.example")).toEqual({});
    expect(signWith(null, "https://a.example")).toEqual({});
    expect(signWith(zeroKey, "http://a.example")).toEqual({});
  });

  it("is never signed over plain http: robots.txt, page or HEAD", async () => {
    const origin = await startOrigin((request, response) =>
      request.url === "/robots.txt" ? void response.writeHead(404).end() : html(response, "<p>page"),
    );
    const { crawl, tools, introduction } = signingTools();
    const prober = new Prober({ connector: tools.connector, probeMethods: ["head"], ...introduction });

    await crawl(`${origin.url}/a`);
    await prober.probe({ ...headProbe, port: origin.port, secure: false });

    expect(origin.requests).toEqual(["GET /robots.txt", "GET /a", "HEAD /"]);
    expect(origin.headers.flatMap((headers) => Object.keys(headers)).filter(isSignatureField)).toEqual([]);
  });

  it("can be verified over HTTP/1.1, for robots.txt and pages, each with its own nonce", async () => {
    const { origin, certificate } = await secureOrigin();
    const { crawl, publicKey } = signingTools({ certificateFile: certificate.file });

    await crawl(`${origin.url}/a`);

    const authority = `127.0.0.1:${origin.port}`;
    const seen = origin.headers.map((headers, at) => {
      const [method = "", path = ""] = origin.requests[at]!.split(" ");
      return seenSignature({ method, path, authority, headers }, "sig1", publicKey);
    });
    expect(origin.requests).toEqual(["GET /robots.txt", "GET /a"]);
    expect(seen.map(({ valid }) => valid)).toEqual([true, true]);
    expect(seen[0]?.parameters).toMatchObject({ keyid: thumbprint(publicKey), tag: "web-bot-auth" });
    expect(seen[0]?.parameters.nonce).not.toBe(seen[1]?.parameters.nonce);
    const elsewhere = { method: "GET", path: "/a", authority: "other.example", headers: origin.headers[1]! };
    expect(seenSignature(elsewhere, "sig1", publicKey).valid).toBe(false);
  });

  it("can be verified over HTTP/2", async () => {
    const certificate = makeCertificate();
    atEnd(() => certificate.remove());
    const asked: SignedMessage[] = [];
    const origin = await startHttp2Origin(certificate, (request, response) => {
      const { ":authority": authority = "", ":path": path = "", ...headers } = request.headers;
      asked.push({ method: "GET", path: String(path), authority: String(authority), headers });
      response.writeHead(200, { "content-type": "text/plain" });
      response.end("User-agent: *\nAllow: /\n");
    });
    const { crawl, publicKey } = signingTools({ certificateFile: certificate.file });

    await crawl(`${origin.url}/a`);

    expect(origin.agreed).toEqual(["h2"]);
    expect(asked.map(({ path }) => path)).toEqual(["/robots.txt", "/a"]);
    expect(asked.map((message) => seenSignature(message, "sig1", publicKey).valid)).toEqual([true, true]);
  });

  it("can also be a HEAD probe", async () => {
    const { origin, certificate } = await secureOrigin();
    const { tools, introduction, publicKey } = signingTools({ certificateFile: certificate.file });
    const prober = new Prober({ connector: tools.connector, probeMethods: ["head"], ...introduction });

    await prober.probe({ ...headProbe, port: origin.port, secure: true });

    const asked = { method: "HEAD", path: "/", headers: origin.headers[0]! };
    const message = { ...asked, authority: `127.0.0.1:${origin.port}` };
    expect(seenSignature(message, "sig1", publicKey).valid).toBe(true);
  });
});

describe("a crawler's introduction", () => {
  async function crawlAs(introduction: Introduction) {
    const origin = await startOrigin((_request, response) => html(response, "<p>page"));
    await toolsOf(introduction)
      .crawl(`${origin.url}/`)
      .catch(() => {});
    return origin;
  }

  it("is the coordinator's User-Agent, unsigned without a key", async () => {
    const introduction = new Introduction(null);
    introduction.onWelcome(welcome);

    const { headers } = await crawlAs(introduction);

    expect(headers.at(-1)).toMatchObject({ "user-agent": welcome.userAgent });
    expect(headers.at(-1)).not.toHaveProperty("signature");
  });

  it("does not exist before a welcome, so nothing is requested", async () => {
    const { requests } = await crawlAs(new Introduction(null));

    expect(requests).toEqual([]);
  });
});
