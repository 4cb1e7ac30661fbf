/** `log` prints the end of the supervisor's log as text, across rotated files. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { readable } from "#crawler/cli/log-command";
import { RotatingLog } from "#crawler/supervisor/run-supervisor";
import { type PartnerConsole, partnerConsole } from "../support/partner-console.ts";

let partner: PartnerConsole;
beforeEach(() => {
  partner = partnerConsole();
  mkdirSync(join(partner.home, "spool"), { recursive: true });
});

const line = (msg: string) =>
  JSON.stringify({ level: "warn", time: "2026-11-22T12:00:00.000Z", name: "amber", host: "a.example", msg });

describe("the log", () => {
  it("is shown as text, or as written for programs", async () => {
    const log = new RotatingLog({ home: partner.home });
    for (const words of ["one", "two", "three"]) log.write(line(words));

    const shown = await partner.run("log", "--lines", "2");
    const json = await partner.run("log", "--lines", "1", "--json");

    expect(shown).toEqual({
      code: 0,
      text: "2026-11-22 12:00:00 warn: two host=a.example\n2026-11-22 12:00:00 warn: three host=a.example",
    });
    expect(JSON.parse(json.text)).toMatchObject({ msg: "three" });
  });

  it("says where the log is missing, and refuses an invalid number", async () => {
    const none = await partner.run("log");
    const wrong = await partner.run("log", "--lines", "many");

    expect(none).toMatchObject({ code: 3, text: expect.stringContaining("There is no log") });
    expect(wrong.code).toBe(2);
  });

  it("continues in the previous file when the newest has too few lines", async () => {
    const log = new RotatingLog({ home: partner.home, fileBytes: 250 });
    for (let i = 1; i <= 5; i++) log.write(line(`line ${i}`));

    const { text } = await partner.run("log", "--lines", "3");

    expect(text.match(/line \d/g)).toEqual(["line 3", "line 4", "line 5"]);
  });

  it("sends no control sequences to the terminal", () => {
    expect(readable("panic\u001b[31m")).toBe("panic [31m");
    expect(readable(line("a\u001bb"))).toBe("2026-11-22 12:00:00 warn: a b host=a.example");
  });
});
