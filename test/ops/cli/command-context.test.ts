/** Which home, database and schema a command uses, and how it prints. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { beforeEach, describe, expect, it } from "vitest";
import {
  commandContext,
  contextOfStart,
  contradictedDatabase,
  defaultHome,
  readCurrentRun,
  writeCurrentRun,
} from "#ops/cli/command-context";
import { ProgressLine } from "#ops/cli/output";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const root = temporaryFolder("nearcrawl-context-");
let home: string;
let homes = 0;
beforeEach(() => {
  homes += 1;
  home = join(root, `home-${homes}`);
});

describe("a command's context", () => {
  const run = {
    schema: "world",
    webUrl: "http://127.0.0.1:7411",
    pid: 17,
    resolvers: ["127.0.0.1:53"],
    settingsFile: null,
    database: null,
  };

  it("takes options before the environment, the environment before the latest run, that before the defaults", () => {
    const env = { NEARCRAWL_HOME: home, DATABASE_URL: "postgres://env/", NEARCRAWL_SCHEMA: "of_env" };

    expect(commandContext({}, { NEARCRAWL_HOME: home })).toEqual({
      home,
      settingsFile: null,
      databaseUrl: null,
      schema: "nearcrawl",
      currentRun: null,
    });
    writeCurrentRun({ home, databaseUrl: null }, run);
    expect(commandContext({}, { NEARCRAWL_HOME: home })).toMatchObject({ schema: "world", currentRun: run });
    expect(commandContext({}, env)).toMatchObject({ databaseUrl: "postgres://env/", schema: "of_env" });
    expect(
      commandContext({ home: `${home}-b`, databaseUrl: "postgres://option/", schema: "of_option" }, env),
    ).toEqual({
      home: `${home}-b`,
      settingsFile: null,
      databaseUrl: "postgres://option/",
      schema: "of_option",
      currentRun: null,
    });
  });

  it("treats an empty variable as unset", () => {
    const env = { NEARCRAWL_HOME: "", DATABASE_URL: "", NEARCRAWL_SCHEMA: "", XDG_DATA_HOME: root };

    expect(commandContext({}, env)).toMatchObject({
      home: defaultHome(env),
      databaseUrl: null,
    });
    expect(commandContext({}, env).schema).not.toBe("");
  });

  it("names file and line of a wrong database URL, without its password", () => {
    mkdirSync(home, { recursive: true });
    const url = "postgres://me:secret@10.0.0.1,10.0.0.2:99999/d";
    writeFileSync(join(home, "coordinator.toml"), `contact = "a@example.org"\ndatabaseUrl = "${url}"\n`);
    const context = () => commandContext({}, { NEARCRAWL_HOME: home });

    expect(context).toThrow(
      `${home}/coordinator.toml:2: databaseUrl: the database URL: port "99999" of host "10.0.0.2": must be a number from 1 to 65535`,
    );
    expect(context).not.toThrow("secret");
  });

  it("takes the database of the named settings file, in TOML or JSON, or of the latest run's", () => {
    const env = { NEARCRAWL_HOME: home };
    const toml = join(home, "other.toml");
    const json = join(home, "other.json");
    mkdirSync(home, { recursive: true });
    writeFileSync(join(home, "coordinator.toml"), 'databaseUrl = "postgres://usual/"\n');
    writeFileSync(toml, 'databaseUrl = "postgres://of-toml/"\n');
    writeFileSync(json, '{"databaseUrl":"postgres://of-json/"}\n');

    expect(commandContext({}, env)).toMatchObject({ databaseUrl: "postgres://usual/" });
    expect(commandContext({ config: toml }, env)).toMatchObject({
      databaseUrl: "postgres://of-toml/",
      settingsFile: toml,
    });
    expect(contextOfStart({ config: json }, env)).toMatchObject({ databaseUrl: "postgres://of-json/" });

    writeCurrentRun({ home, databaseUrl: "postgres://of-json/" }, { ...run, settingsFile: json });

    expect(commandContext({}, env)).toMatchObject({ databaseUrl: "postgres://of-json/", settingsFile: json });
    expect(commandContext({ config: toml }, env)).toMatchObject({ databaseUrl: "postgres://of-toml/" });
    expect(contextOfStart({}, env)).toMatchObject({ databaseUrl: "postgres://usual/" });
  });

  it("opens no embedded database after a run on a server that is no longer stated", () => {
    const databaseUrl = "postgres://me:secret@db.example/d";
    writeCurrentRun({ home, databaseUrl }, { ...run, settingsFile: join(home, "is-gone.toml") });
    const context = (env: NodeJS.ProcessEnv = {}) => commandContext({}, { NEARCRAWL_HOME: home, ...env });

    expect(context).toThrow(
      /the latest run used the database postgres:\/\/me:?\**@db\.example\/d, and none is stated now: state it by/,
    );
    expect(context({ DATABASE_URL: databaseUrl })).toMatchObject({ databaseUrl });
  });

  it("reports which of several stated databases is used, without passwords", () => {
    mkdirSync(home, { recursive: true });
    writeFileSync(join(home, "coordinator.toml"), 'databaseUrl = "postgres://me:secret@a.example/d"\n');
    const env = { NEARCRAWL_HOME: home, DATABASE_URL: "postgres://me:secret@b.example/d" };
    const words = contradictedDatabase(contextOfStart({}, env), {}, env);

    expect(words).toMatch(
      /^DATABASE_URL \(.*b\.example\/d\) is used, and not databaseUrl of .*coordinator\.toml \(.*a\.example\/d\)$/,
    );
    expect(words).not.toContain("secret");
    expect(
      contradictedDatabase(contextOfStart({}, { NEARCRAWL_HOME: home }), {}, { NEARCRAWL_HOME: home }),
    ).toBeNull();
  });

  it.each([
    ...["", "{", "null", "[]", '{"schema":1,"pid":2}', '{"schema":"world"}'].map(
      (text) => [text, null] as const,
    ),
    [
      '{"schema":"world","pid":1,"webUrl":5,"resolvers":"127.0.0.1"}',
      { schema: "world", pid: 1, webUrl: null, resolvers: [], settingsFile: null, database: null },
    ],
    [JSON.stringify(run), run],
  ] as const)("takes of the record of a run %j what is right", (text, expected) => {
    mkdirSync(home, { recursive: true });
    writeFileSync(join(home, "current-run.json"), text);

    expect(readCurrentRun(home)).toEqual(expected);
  });
});

describe("what a command prints", () => {
  const streamOf = (isTTY: boolean, columns = 40) => {
    const stream = Object.assign(new PassThrough(), { isTTY, columns }) as unknown as NodeJS.WriteStream;
    const written = () => String((stream as unknown as PassThrough).read() ?? "");
    return { stream, written };
  };

  it("is one rewritten line on a terminal, cut to its width, and ended once", () => {
    const { stream, written } = streamOf(true, 30);
    const line = new ProgressLine(stream);

    line.show("x".repeat(100));
    line.show("second");
    line.done();
    line.done();

    expect(written()).toBe(`\r\x1b[2K${"x".repeat(29)}\r\x1b[2Ksecond\n`);
  });

  it("is a plain line every few seconds elsewhere", () => {
    const { stream, written } = streamOf(false);
    const line = new ProgressLine(stream, 5);

    for (const seconds of [0, 1, 4.9, 5, 9, 10]) line.show(`at ${seconds}`, seconds * 1000);
    line.done();

    expect(written()).toBe("at 0\nat 5\nat 10\n");
  });
});
