/** The direction of imports (ops/decisions/0001): what the compiler would allow and the house does not. */
import { readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "..");

interface Import {
  readonly file: string;
  readonly from: string;
}

const imports = ["coordinator", "migrating-crawler", "rir-import", "db", "ops"].flatMap(importsBelow);

function importsBelow(folder: string): Import[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name) => {
      const file = relative(root, join(root, folder, name));
      const text = readFileSync(join(root, file), "utf8");
      const matches = text.matchAll(/(?:\bfrom\s+|\bimport\s*\(\s*|^import\s+)["']([^"']+)["']/gm);
      return [...matches].map((match) => ({ file, from: match[1]! }));
    });
}

const offending = (inside: string, forbidden: RegExp) =>
  imports
    .filter(({ file, from }) => file.startsWith(inside) && forbidden.test(from))
    .map(({ file, from }) => `${file} imports ${from}`);

describe("imports only go down", () => {
  it("finds the sources", () => {
    expect(imports.length).toBeGreaterThan(50);
  });

  it("core has no I/O and knows no adapter, flow or package of the outside", () => {
    const outside =
      /^node:(fs|net|tls|http|https|http2|dns|child_process|worker_threads|os|timers|cluster)|^(pg|undici|fastify|ws|pino)\b|#(db|coordinator|crawler|rir-import|ops)\/|\.\.\/\.\.\/(flows|postgres|net|web)/;

    expect(offending("coordinator/core/", outside)).toEqual([]);
  });

  it("protocol knows core at most", () => {
    const up =
      /#(db|coordinator|crawler|rir-import|ops)\/|\.\.\/(flows|postgres|net|web)|^(pg|undici|fastify|ws)\b/;

    expect(offending("coordinator/protocol/", up)).toEqual([]);
  });

  it("flows know neither Postgres nor sockets nor pages", () => {
    const up =
      /\.\.\/(postgres|net|web)|#(db|crawler|rir-import|ops)\/|^(pg|undici|fastify|ws)\b|^node:(fs|net|http|dns)/;

    expect(offending("coordinator/flows/", up)).toEqual([]);
  });

  it("the crawler imports #protocol, #core/ip and #core/errors, nothing else of ours", () => {
    const others =
      /^#(?!protocol\/|core\/ip\/|core\/errors$)|^\.\.\/(\.\.\/)*(coordinator|db|rir-import|ops)\//;

    expect(offending("migrating-crawler/", others)).toEqual([]);
  });

  it("nothing reaches over a top folder's wall with a relative path", () => {
    const reach = imports.filter(({ file, from }) => {
      if (!from.startsWith(".")) return false;
      const target = relative(root, resolve(root, file, "..", from));
      return target.split("/")[0] !== file.split("/")[0];
    });

    expect(reach.map(({ file, from }) => `${file} imports ${from}`)).toEqual([]);
  });

  it("only the commands read the environment and the arguments", () => {
    const readers = ["coordinator", "migrating-crawler", "rir-import", "db"].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
        .filter((name) => name.endsWith(".ts"))
        .map((name) => join(folder, name))
        .filter((file) => /process\.(env|argv)\b/.test(readFileSync(join(root, file), "utf8"))),
    );

    expect(readers.sort()).toEqual([
      "migrating-crawler/dock/partner-program.ts",
      "migrating-crawler/main.ts",
    ]);
  });

  it("nobody asks URL.canParse, which Node 20 answers wrongly", () => {
    const askers = ["coordinator", "migrating-crawler", "rir-import", "db", "ops"].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
        .filter((name) => name.endsWith(".ts"))
        .map((name) => join(folder, name))
        .filter((file) => /URL\.canParse\(/.test(readFileSync(join(root, file), "utf8"))),
    );

    expect(askers).toEqual([]);
  });
});
