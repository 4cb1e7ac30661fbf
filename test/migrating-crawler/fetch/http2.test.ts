/** Sites with correct and broken HTTP/2 (RFC 9113) over verified TLS, directly and through a proxy. */
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fetchResultSchema } from "#protocol/result";
import { atEnd } from "../../support/at-end.ts";
import { fetchAll, fetchOne } from "../support/fetch-one.ts";
import { startConnectProxy, startSocks5Proxy } from "../support/proxies.ts";
import {
  makeCertificate,
  startHttp2Origin,
  startRawTlsOrigin,
  type TestCertificate,
} from "../support/secure-origin.ts";

let certificate: TestCertificate;
beforeAll(() => {
  certificate = makeCertificate();
});
afterAll(() => certificate.remove());

type Handle = (request: Http2ServerRequest, response: Http2ServerResponse) => void;

/** There is no robots.txt. */
async function site(handle: Handle) {
  const origin = await startHttp2Origin(certificate, ((
    request: Http2ServerRequest,
    response: Http2ServerResponse,
  ) => {
    if (request.url === "/robots.txt") response.writeHead(404).end();
    else handle(request, response);
  }) as never);
  atEnd(() => origin.close());
  return origin;
}

const page: Handle = (_request, response) => {
  response.setHeader("content-type", "text/html");
  response.end("<title>Two</title><p>x");
};
const trusting = () => ({ certificateFile: certificate.file });

describe("a site with HTTP/2", () => {
  it("is crawled with it over one connection, which the result reports", async () => {
    const origin = await site(page);

    const { results } = await fetchAll([{ url: `${origin.url}/1` }, { url: `${origin.url}/2` }], trusting());

    expect(results.map((result) => result.page?.title)).toEqual(["Two", "Two"]);
    expect(results[0]?.connection).toEqual({ http: "2", tls: "TLSv1.3" });
    expect(results[0]?.timing.tlsMs).toBeGreaterThan(0);
    expect(origin.agreed).toEqual(["h2"]);
  });

  it.each([
    ["an HTTP CONNECT proxy", startConnectProxy],
    ["a SOCKS5 proxy", startSocks5Proxy],
  ])("is crawled with it through %s", async (_name, startProxy) => {
    const origin = await site(page);
    const proxy = await startProxy();
    atEnd(() => proxy.close());

    const result = await fetchOne({ url: `${origin.url}/1` }, { ...trusting(), proxy: proxy.url });

    expect(result.connection?.http).toBe("2");
    expect(proxy.asked).toEqual([`127.0.0.1:${origin.port}`]);
  });

  it("has its pages cut at the limit and keeps the connection", async () => {
    const origin = await site((request, response) => {
      response.setHeader("content-type", "text/html");
      if (request.url === "/small") return void response.end("<p>x");
      const pour = () => {
        while (!response.destroyed && response.write("<p>never ends".repeat(1000)));
      };
      response.on("drain", pour);
      pour();
    });

    const { results } = await fetchAll(
      [{ url: `${origin.url}/big` }, { url: `${origin.url}/small` }],
      trusting(),
    );

    expect(results.map((result) => result.outcome)).toEqual([
      { type: "fetched", status: 200, truncated: true },
      { type: "fetched", status: 200, truncated: false },
    ]);
    expect(origin.agreed).toEqual(["h2"]);
  });

  it("that sends GOAWAY after a page is connected to again", async () => {
    const origin = await site((request, response) => {
      const { session } = request.stream;
      response.once("close", () => session?.goaway());
      page(request, response);
    });

    const { results } = await fetchAll([{ url: `${origin.url}/1` }, { url: `${origin.url}/2` }], trusting());

    expect(results.map((result) => result.outcome.type)).toEqual(["fetched", "fetched"]);
    expect(origin.agreed.length).toBeGreaterThan(1);
    expect(new Set(origin.agreed)).toEqual(new Set(["h2"]));
  });
});

describe("a site that offers HTTP/2 and fails", () => {
  it.each([
    ["closes", (socket: Socket) => socket.end()],
    [
      "answers in HTTP/1.1",
      (socket: Socket) => socket.write("HTTP/1.1 400 Bad\r\ncontent-length: 0\r\n\r\n"),
    ],
    ["wants HTTP/1.1 (GOAWAY)", (socket: Socket) => socket.write(goaway(0x0d))],
  ])("and %s is crawled with HTTP/1.1", async (_what, behave) => {
    const origin = await startRawTlsOrigin(certificate, ["h2", "http/1.1"], (socket) => {
      if (socket.alpnProtocol === "h2") return void socket.once("data", () => behave(socket));
      socket.on("data", (head) => socket.write(answerTo(head.toString("latin1"))));
    });
    atEnd(() => origin.close());

    const result = await fetchOne({ url: `${origin.url}/` }, trusting());

    expect(result.outcome).toEqual({ type: "fetched", status: 200, truncated: false });
    expect(result.connection).toEqual({ http: "1.1", tls: "TLSv1.3" });
    expect(origin.agreed).toEqual(["h2", "http/1.1"]);
  });
});

describe("an HTTP/2 server that attacks", () => {
  const settings = frame(4, 0, 0);

  it.each([
    ["000", { type: "failed", code: "bad-response", reason: "a status of 0, with which no answer ends" }],
    ["099", { type: "failed", code: "bad-response", reason: "a status of 99, with which no answer ends" }],
    ["600", { type: "http-error", status: 600 }],
    ["999", { type: "http-error", status: 999 }],
  ])("with status %s has a valid outcome", async (status, outcome) => {
    let requests = 0;
    const origin = await startRawTlsOrigin(certificate, ["h2"], (socket) => {
      socket.write(settings);
      socket.on("data", (data) => {
        // The first request is for robots.txt; a failure on a kept connection is retried on another.
        for (const stream of headersIn(data)) socket.write(answer(stream, requests++ === 0 ? "404" : status));
      });
    });
    atEnd(() => origin.close());

    const result = await fetchOne({ url: `${origin.url}/` }, trusting());

    expect(result.outcome).toMatchObject(outcome);
    expect(fetchResultSchema.safeParse(result).success).toBe(true);
  });

  const endless = (piece: Buffer) => (socket: Socket) => {
    socket.write(settings);
    const pour = () => {
      while (!socket.destroyed && socket.write(piece));
    };
    socket.on("drain", pour);
    pour();
  };

  it.each(
    Object.entries({
      "with settings": endless(Buffer.concat(Array<Buffer>(500).fill(settings))),
      "with pings": endless(Buffer.concat(Array<Buffer>(500).fill(frame(6, 0, 0, Buffer.alloc(8))))),
      "with empty data": endless(Buffer.concat([headers(4), ...Array<Buffer>(500).fill(frame(0, 0, 1))])),
      "with an endless header": endless(
        Buffer.concat([headers(0), ...Array<Buffer>(50).fill(frame(9, 0, 1, Buffer.alloc(1000, 0x40)))]),
      ),
      "with window updates": endless(
        Buffer.concat(Array<Buffer>(500).fill(frame(8, 0, 0, Buffer.from([0, 0, 0, 1])))),
      ),
      "with frames of unknown type": endless(
        Buffer.concat(Array<Buffer>(50).fill(frame(0xbb, 0, 0, Buffer.alloc(16_000)))),
      ),
    }),
  )("%s fails within limits", async (_how, behave) => {
    const origin = await startRawTlsOrigin(
      certificate,
      ["h2"],
      (socket) => void socket.once("data", () => behave(socket)),
    );
    atEnd(() => origin.close());
    const before = process.memoryUsage.rss();

    const result = await fetchOne(
      { url: `${origin.url}/` },
      { ...trusting(), timeouts: { connectMs: 5000, firstByteMs: 5000, idleMs: 5000, totalMs: 10_000 } },
    );

    expect(result.outcome).toMatchObject({ type: "failed", blame: expect.stringMatching(/target|network/) });
    expect(process.memoryUsage.rss() - before).toBeLessThan(150e6);
  });
});

/** RFC 9113 section 4.1 */
function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Finds streams whose requests begin in the data: HEADERS with all flags, except PRIORITY in one case. */
function headersIn(data: Buffer): number[] {
  return [1, 3].filter((stream) =>
    [0x05, 0x25].some((flags) => data.includes(frame(1, flags, stream).subarray(3))),
  );
}

/** `:status` from HPACK's static table with a literal value; ends the stream. */
function answer(stream: number, status: string): Buffer {
  return frame(1, 5, stream, Buffer.concat([Buffer.from([0x08, status.length]), Buffer.from(status)]));
}

/** `:status: 200` from HPACK's static table on the first stream. */
const headers = (flags: number): Buffer => frame(1, flags, 1, Buffer.from([0x88]));

function goaway(code: number): Buffer {
  const payload = Buffer.alloc(8);
  payload.writeUInt32BE(code, 4);
  return Buffer.concat([frame(4, 0, 0), frame(7, 0, 0, payload)]);
}

function answerTo(head: string): string {
  if (head.startsWith("GET /robots.txt ")) return "HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n";
  return "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\n<p>x";
}
