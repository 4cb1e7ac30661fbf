/** `nearcrawl rir lookup` as a person and a program run it. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "#db/server-database";
import { lookUpCommand } from "#ops/cli/rir/lookup-command";
import { applyImport } from "#rir-import/apply";
import { type SourceFolder, sourceFolder } from "../../rir-import/source-folder.ts";
import { inProcess } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";

let folder: SourceFolder;
let database: Database;
beforeAll(async () => {
  folder = sourceFolder();
  database = await testDatabase();
  await applyImport(database, [folder.write("ripe.db", registry)]);
});
afterAll(async () => {
  folder.remove();
  await database.close();
});

const registry = `organisation: ORG-EX1-RIPE
org-name: Exemplary Networks
country: NL
source: RIPE

inetnum: 45.10.0.0/16
netname: WHOLE
org: ORG-EX1-RIPE
source: RIPE

inetnum: 45.10.116.0 - 45.10.119.255
netname: EARLIER
country: DE
source: RIPE

inetnum: 45.10.119.0 - 45.10.120.255
netname: LATER
country: FR
source: RIPE

inet6num: 2a02:f00::/32
netname: SIX
source: RIPE
`;

const rirLookUp = (...words: readonly string[]) =>
  inProcess(lookUpCommand(), [...words, "--database-url", database.url, "--schema", database.schema]);

describe("nearcrawl rir lookup", () => {
  it("shows the chain with holder, country and registry, and the range that crosses it", async () => {
    const { code, out } = await rirLookUp("45.10.119.7");

    expect(code).toBe(0);
    expect(out).toBe(`45.10.119.7 lies in
range                          registry  country  name   holder                             delegated to
─────────────────────────────  ────────  ───────  ─────  ─────────────────────────────────  ────────────
45.10.0.0/16                   ripencc   NL       WHOLE  Exemplary Networks (ORG-EX1-RIPE)
  45.10.119.0 - 45.10.120.255  ripencc   FR       LATER
45.10.119.0 - 45.10.120.255 is 45.10.119.0/24, 45.10.120.0/24
crossing it:
range           registry  country  name     holder  delegated to
──────────────  ────────  ───────  ───────  ──────  ────────────
45.10.116.0/22  ripencc   DE       EARLIER
`);
  });

  it("prints one JSON line for each address, and exits with 3 when one is not found", async () => {
    const { code, out } = await rirLookUp("2a02:f00::1", "46.1.1.1", "--json");

    const answers = out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(code).toBe(3);
    expect(answers).toEqual([
      {
        asked: "2a02:f00::1",
        chain: [
          {
            subnetId: expect.any(Number),
            range: "2a02:f00::/32",
            registry: "ripencc",
            country: null,
            name: "SIX",
            holder: null,
            handle: null,
            delegatedTo: null,
            addedIn: 1,
          },
        ],
        crossing: [],
      },
      { asked: "46.1.1.1", chain: [], crossing: [] },
    ]);
  });

  it("exits with 2 before reading anything when an address is none", async () => {
    const wrong = await rirLookUp("45.10.1");

    expect(wrong).toMatchObject({
      code: 2,
      out: "",
      err: 'nearcrawl: "45.10.1" is neither an address nor a range\n',
    });
  });
});
