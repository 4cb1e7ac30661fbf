/** The bundled program: everything it starts is bundled too, and the bundled packages are credited. */
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, it } from "vitest";
import { builtProgram, nearcrawl, projectRoot } from "../support/built-command.ts";

it("every thread and process that is started by a relative path needs no package", async () => {
  await builtProgram("ops/cli/main");
  const sources = sourceFiles();
  const named = sources
    .filter((path) => read(path).includes("import.meta."))
    .flatMap((path) => [...read(path).matchAll(/["'`/]([a-z\d-]+-(?:worker|process))(?=\.js|\$\{)/g)])
    .map(([, name]) => name);

  const built = sources.filter((path) => named.includes(basename(path, ".ts")));
  const needy = built.filter((path) =>
    /(?:from|import) ?\(?["'][#@a-z](?!ode:)/.test(read(join("dist", path.replace(/\.ts$/, ".js")))),
  );

  expect(built.length).toBeGreaterThanOrEqual(3);
  expect(needy).toEqual([]);
});

it("what is loaded late is found in the pieces: stemmers and languages of a page", async () => {
  const extracted = async (sentence: string) => {
    const { code, out, err } = await nearcrawl(["extract", "-", "--json"], {
      input: `<!doctype html><p>${sentence.repeat(9)}</p>`,
    });
    expect([code, err]).toEqual([0, ""]);
    return (JSON.parse(out) as { page: { language: string; simhash: string } }).page;
  };

  const page = await extracted("The winds were blowing over the hills of the north. ");

  expect(page.language).toBe("en");
  // Of the same stems.
  const other = await extracted("The wind were blows over the hilling of the norths. ");
  expect(other.simhash).toBe(page.simhash);
});

it("the licence of every bundled package is included", async () => {
  await builtProgram("ops/cli/main");
  const notices = read("dist/third-party-notices.txt");
  const pieces = readdirSync(join(projectRoot, "dist/ops/pieces")).filter((name) => name.endsWith(".js"));

  const inside = pieces
    .flatMap((name) => [
      ...read(join("dist/ops/pieces", name)).matchAll(/^\/\/ node_modules\/((?:@[^/]+\/)?[^/]+)\//gm),
    ])
    .map(([, name]) => name!);
  const missing = [...new Set(inside)].filter((name) => !new RegExp(`^${name} \\d+\\.`, "m").test(notices));

  expect(inside).toContain("fastify");
  expect(notices, "a package inside another's bundle").toMatch(/^css-select \d+\./m);
  expect(missing).toEqual([]);
  expect(notices).toContain("Permission is hereby granted, free of charge");
});

const read = (path: string) => readFileSync(join(projectRoot, path), "utf8");

function sourceFiles(): string[] {
  return ["coordinator", "migrating-crawler", "rir-import", "ops", "db"].flatMap((room) =>
    readdirSync(join(projectRoot, room), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => `${room}/${name}`),
  );
}
