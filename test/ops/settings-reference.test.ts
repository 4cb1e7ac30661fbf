/** The settings' reference is of one mind with the schema, and every setting has its words. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { settingWords } from "#coordinator/setting-words";
import { settingsReference, startSettings } from "#ops/cli/setup/settings-reference";

it("every setting of the start has words, and words are of settings alone", () => {
  const names = [...startSettings().map(({ name }) => name), "databaseUrl"];

  expect(names.filter((name) => settingWords[name] === undefined)).toEqual([]);
  expect(Object.keys(settingWords).filter((name) => !names.includes(name))).toEqual([]);
});

it("ops/runbook/settings.md is what npm run settings writes", () => {
  const file = resolve(import.meta.dirname, "../../ops/runbook/settings.md");

  expect(readFileSync(file, "utf8")).toBe(settingsReference());
});
