/**
 * Slightly broken servers are read as browsers read them, both for pages and for robots.txt, which comes first. One
 * server serves each case under both names.
 */
import { deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { seededRandom } from "#core/random";
import { FramingMender } from "#crawler/fetch/odd-framing";
import { fetchAll } from "../support/fetch-one.ts";
import { startRawOrigin } from "../support/origin.ts";

const robots = "User-agent: *\nDisallow: /p\n";
const page = "<!doctype html><title>Bridges</title><p>Wooden bridges of the valley.</p>";

/** The body's bytes are its characters. */
const answer = (lines: readonly string[], body: string | Buffer) =>
  Buffer.concat([
    Buffer.from(`${["HTTP/1.1 200 OK", ...lines].join("\r\n")}\r\n\r\n`, "latin1"),
    Buffer.isBuffer(body) ? body : Buffer.from(body, "latin1"),
  ]);

type Serve = (body: string, type: string) => Buffer;

const sized = (lines: readonly string[], packed: (body: string) => Buffer = Buffer.from): Serve => {
  return (body, type) => {
    const bytes = packed(body);
    return answer([`Content-Type: ${type}`, ...lines, `Content-Length: ${bytes.length}`], bytes);
  };
};

const chunked =
  (size: (bytes: number) => string): Serve =>
  (body, type) =>
    answer(
      [`Content-Type: ${type}`, "Transfer-Encoding: chunked"],
      `${size(5)}\r\n${body.slice(0, 5)}\r\n${size(body.length - 5)}\r\n${body.slice(5)}\r\n0\r\n\r\n`,
    );

async function served(serve: Serve, paths: readonly string[]) {
  let requests = 0;
  const origin = await startRawOrigin((socket, head) => {
    requests++;
    const isRobots = head.startsWith("GET /robots.txt ");
    socket.write(serve(isRobots ? robots : page, isRobots ? "text/plain" : "text/html"));
  });
  const timeouts = { connectMs: 5000, firstByteMs: 5000, idleMs: 5000, totalMs: 10_000 };
  const { results } = await fetchAll(
    paths.map((path) => ({ url: `${origin.url}${path}` })),
    { timeouts },
  );
  return { origin, results, requests };
}

const hex = (bytes: number) => bytes.toString(16);

/** From other crawlers' bug reports: each is a page in a browser. */
const odd: Readonly<Record<string, Serve>> = {
  "Content-Encoding: none": sized(["Content-Encoding: none"]),
  "Content-Encoding: UTF-8": sized(["Content-Encoding: UTF-8"]),
  "Content-Encoding: text/html": sized(["Content-Encoding: text/html"]),
  "Content-Encoding: none, gzip": sized(["Content-Encoding: none, gzip"], gzipSync),
  "Content-Encoding: 8bit": sized(["Content-Encoding: 8bit"]),
  "Content-Encoding: utf-8, identity, none": sized(["Content-Encoding: utf-8, identity, none"]),
  "a header over two lines": sized(["Content-Security-Policy: default-src", "  'self'"]),
  "a header over three lines, by tabs": sized(["X-A: a", "\tb", "\t c"]),
  "a folded Content-Type": sized(["X-A:", " b", "X-B: c"]),
  "a folded Transfer-Encoding": (body, type) =>
    answer(
      [`Content-Type: ${type}`, "Transfer-Encoding:", " chunked"],
      `${hex(body.length)}\r\n${body}\r\n0\r\n\r\n`,
    ),
  "a folded first header": (body, type) =>
    answer([" of the status", `Content-Type: ${type}`, `Content-Length: ${body.length}`], body),
  "a head whose lines end with single line feeds": (body, type) =>
    Buffer.from(
      `HTTP/1.1 200 OK\nContent-Type: ${type}\nContent-Length: ${body.length}\n\n${body}`,
      "latin1",
    ),
  "a header with a single line feed before a folded one": (body, type) =>
    Buffer.from(
      `HTTP/1.1 200 OK\r\nX-A: b\nX-C: d\n e\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\n\r\n${body}`,
      "latin1",
    ),
  "an unrequested 100 before it": (body, type) =>
    Buffer.concat([Buffer.from("HTTP/1.1 100 Continue\r\n\r\n"), sized([])(body, type)]),
  "two unrequested 100, one with headers": (body, type) =>
    Buffer.concat([
      Buffer.from("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100\r\nDate: today\r\n\r\n"),
      sized([])(body, type),
    ]),
  "a 103 and an unrequested 100 before it": (body, type) =>
    Buffer.concat([
      Buffer.from("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"),
      sized([])(body, type),
    ]),
  "blanks after chunk sizes": chunked((bytes) => `${hex(bytes)}  `),
  "a tab after chunk sizes": chunked((bytes) => `${hex(bytes)}\t`),
  "blanks around a chunk extension": chunked((bytes) => `${hex(bytes)} ; a=b`),
  "gzip without its last eight bytes": sized(["Content-Encoding: gzip"], (body) =>
    gzipSync(body).subarray(0, -8),
  ),
  "gzip without its last three bytes": sized(["Content-Encoding: gzip"], (body) =>
    gzipSync(body).subarray(0, -3),
  ),
  "zlib without its checksum": sized(["Content-Encoding: deflate"], (body) =>
    deflateSync(body).subarray(0, -4),
  ),
};

describe("browsers read, and so do we, in pages and robots.txt:", () => {
  it.each(Object.entries(odd))("%s", async (_what, serve) => {
    const { results } = await served(serve, ["/ok", "/p"]);

    expect(results[0]?.outcome).toMatchObject({ type: "fetched", truncated: false });
    expect(results[0]?.page?.title).toBe("Bridges");
    expect(results[1]?.outcome.type).toBe("refused-by-robots");
  });
});

describe("is refused, and such a robots.txt closes the site:", () => {
  it.each(
    Object.entries<Serve>({
      "an unknown coding over binary content": sized(["Content-Encoding: rot13"], gzipSync),
      "compress over its own bytes": sized(["Content-Encoding: compress"], () =>
        Buffer.from("1f9d9000010203040506", "hex"),
      ),
      "a chunk size with a sign": chunked((bytes) => `+${hex(bytes)}`),
      "a blank before a chunk size": chunked((bytes) => ` ${hex(bytes)}`),
      "two lengths in one folded header": (body, type) =>
        answer([`Content-Type: ${type}`, `Content-Length: ${body.length}`, " 5"], body),
      "a second length after a folded header": (body, type) =>
        answer(
          [`Content-Type: ${type}`, "Content-Length: 5", "X-A: b", " c", `Content-Length: ${body.length}`],
          body,
        ),
      "nothing but 100": () => Buffer.from("HTTP/1.1 100 Continue\r\n\r\n".repeat(5000)),
    }),
  )("%s", async (_what, serve) => {
    const { results } = await served(serve, ["/ok"]);

    expect(results[0]?.outcome).toMatchObject({ type: "failed", blame: "target" });
  });
});

it("a connection is reused unless its framing was repaired", async () => {
  const odd = await served(sized(["X-A: a", " b"]), ["/1", "/2"]);
  const even = await served(sized(["X-A: a"]), ["/1", "/2"]);

  expect(odd.origin.connections()).toBe(odd.requests);
  expect(even.origin.connections()).toBe(1);
});

it("repairs do not depend on packet boundaries and leave valid answers unchanged", () => {
  const random = seededRandom(41);
  const text = Buffer.from(page, "latin1");
  const sound = [
    sized([])(page, "text/html"),
    chunked((bytes) => `${hex(bytes)};a="b c"`)(page, "text/html"),
    text,
  ];
  for (const bytes of [...Object.values(odd).map((serve) => serve(page, "text/html")), ...sound]) {
    const whole = new FramingMender().push(bytes);
    if (sound.includes(bytes)) expect(whole).toEqual(bytes);
    for (let round = 0; round < 20; round++) {
      const mender = new FramingMender();
      const pieces: Buffer[] = [];
      for (let at = 0; at < bytes.length; ) {
        const end = at + 1 + Math.floor(random() ** 2 * 40);
        pieces.push(mender.push(bytes.subarray(at, end)));
        at = end;
      }
      expect(Buffer.concat(pieces).toString("latin1")).toBe(whole.toString("latin1"));
    }
  }
});

describe("a redirect of robots.txt", () => {
  it.each([
    ["/r\xc3\xb6b.txt", "/r%C3%B6b.txt"],
    ["\xce\xb1/r.txt", "/%CE%B1/r.txt"],
    ["/r\xf6b.txt", "/r%C3%B6b.txt"],
    ["  /r%c3%b6b.txt\t", "/r%c3%b6b.txt"],
    ["?\xe2\x82\xac", "/robots.txt?%E2%82%AC"],
  ])("with the bytes %j leads to %s", async (location, target) => {
    const paths: string[] = [];
    const origin = await startRawOrigin((socket, head) => {
      const path = head.split(" ")[1]!;
      paths.push(path);
      const moved = `HTTP/1.1 301 Moved\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`;
      socket.write(path === "/robots.txt" ? Buffer.from(moved, "latin1") : sized([])(robots, "text/plain"));
    });

    const { results } = await fetchAll([{ url: `${origin.url}/p` }]);

    expect(paths).toEqual(["/robots.txt", target]);
    expect(results[0]?.outcome.type).toBe("refused-by-robots");
  });
});

it("URLs in Link, Refresh and Location are read as UTF-8", async () => {
  const target = "/caf\xc3\xa9";
  const { origin, results } = await served(
    sized([`Link: <${target}>; rel="canonical"`, `Refresh: 5; url=${target}2`]),
    ["/ok"],
  );

  expect(results[0]?.page?.canonicalUrl).toBe(`${origin.url}/caf%C3%A9`);
  expect(results[0]?.page?.links.map(({ url }) => url)).toContain(`${origin.url}/caf%C3%A92`);
});

describe("a robots.txt with undeclared gzip", () => {
  it.each(
    Object.entries<Serve>({
      "as text/plain": sized([], (body) => (body === robots ? gzipSync(body) : Buffer.from(body))),
      "within a declared gzip coding": (body, type) =>
        sized(["Content-Encoding: gzip"], (text) => gzipSync(text === robots ? gzipSync(text) : text))(
          body,
          type,
        ),
      "without its last eight bytes": sized([], (body) =>
        body === robots ? gzipSync(body).subarray(0, -8) : Buffer.from(body),
      ),
    }),
  )("%s is read", async (_what, serve) => {
    const { results } = await served(serve, ["/ok", "/p"]);

    expect(results.map(({ outcome }) => outcome.type)).toEqual(["fetched", "refused-by-robots"]);
  });

  it("that is broken closes the site", async () => {
    const broken = sized([], (body) =>
      body === robots ? gzipSync(body).subarray(0, 20) : Buffer.from(body),
    );

    expect((await served(broken, ["/ok"])).results[0]?.outcome).toMatchObject({ type: "failed" });
  });
});
