/** The generated pages of the runbook are current, and every setting has its text. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { settingWords } from "#coordinator/setting-words";
import { references, startSettings } from "#ops/references";

it("every start setting has a description, and every description a setting", () => {
  const names = [...startSettings().map(({ name }) => name), "databaseUrl"];

  expect(names.filter((name) => settingWords[name] === undefined)).toEqual([]);
  expect(Object.keys(settingWords).filter((name) => !names.includes(name))).toEqual([]);
});

it.each(Object.entries(await references()))(
  "ops/runbook/%s is what npm run reference writes",
  (file, text) => {
    expect(readFileSync(resolve(import.meta.dirname, "../../ops/runbook", file), "utf8")).toBe(text);
  },
);
