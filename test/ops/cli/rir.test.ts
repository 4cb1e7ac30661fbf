/** `nearcrawl rir`, once in its own process: output and exit codes. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "#db/server-database";
import { type SourceFolder, sourceFolder } from "../../rir-import/source-folder.ts";
import { nearcrawl } from "../../support/built-command.ts";
import { commandNamed, inProcess } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";

let database: Database;
let folder: SourceFolder;
beforeAll(async () => {
  database = await testDatabase();
  folder = sourceFolder();
});
afterAll(async () => {
  folder.remove();
  await database.close();
});

const rir = (name: string, ...words: readonly string[]) =>
  inProcess(commandNamed("rir"), [
    name,
    "--database-url",
    database.url,
    "--schema",
    database.schema,
    ...words,
  ]);

const object = (range: string) =>
  `inetnum: ${range}\nnetname: EX\ncountry: NL\ndescr: Exemplary Networks\nsource: RIPE\n\n`;

describe("nearcrawl rir", () => {
  it("check reports per file, malformed records with file and line, and needs no database", async () => {
    const file = folder.write("mixed.db", `${object("45.10.0.0/16")}inetnum: 45.11.0.0/99\n`);

    const { code, out } = await nearcrawl(["rir", "check", file]);

    expect(code).toBe(0);
    expect(out).toContain(`${file}:7: the prefix length is not between 0 and 32: "45.11.0.0/99"`);
    expect(out).toMatch(/^IPv4 subnets +1$/m);
  });

  it("covers an import and its rollback: status, plan, apply, look-up, rollback", async () => {
    const file = folder.write("a.db", object("45.10.0.0/16") + object("45.10.1.0/24"));

    expect(await rir("status")).toMatchObject({
      code: 3,
      out: expect.stringContaining("No registry has been imported yet"),
    });
    expect((await rir("plan", file)).out).toContain("Compared with an empty tree");
    const applied = await rir("apply", file, "--json");
    expect(JSON.parse(applied.out)).toMatchObject({
      generation: 1,
      isNew: true,
      plan: { changes: { added: 2 } },
    });
    const found = await rir("lookup", "45.10.1.9");
    expect(found.out).toMatch(/└─ 45\.10\.0\.0\/16 .*\n {3}└─ 45\.10\.1\.0\/24 .*Exemplary Networks/);
    expect((await rir("lookup", "46.1.1.1")).code).toBe(3);
    expect(await rir("rollback")).toMatchObject({
      code: 2,
      err: expect.stringMatching(
        /^nearcrawl: generation 1 is the first import: .*say --to-empty if that is meant\n$/,
      ),
    });
    expect((await rir("rollback", "--to-empty")).out).toEqual(
      expect.stringMatching(
        /^Rolled back: generation 1 \(2 added\)\. Now no registry is in force;.* rir rollforward\n$/,
      ),
    );
    expect((await rir("rollforward")).out).toBe(
      "Generation 1 is in force again (2 added). Undo with: nearcrawl rir rollback\n",
    );
    expect((await rir("lookup", "45.10.1.9")).out).toBe(found.out);
    expect((await rir("rollback", "--to-empty")).code).toBe(0);
    expect(await rir("rollback")).toMatchObject({
      code: 2,
      err: "nearcrawl: there is no import to roll back\n",
    });
  });

  it("exits with 2 and one line for a source of the wrong format", async () => {
    const file = folder.write("page.txt", "<html><title>Sorry</title></html>");

    const { code, out, err } = await inProcess(commandNamed("rir"), ["check", file]);

    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(`nearcrawl: ${file}:1: a web page ("Sorry"), not a registry file\n`);
  });
});
