import { describe, expect, it } from "vitest";
import { triesAgree } from "#crawler/probe/http-head";

describe("tries of one probe", () => {
  it.each([
    ["none is inconclusive", [], false],
    ["one is not confirmed", [20], false],
    ["two close ones confirm each other", [20, 20.6], true],
    ["on a long path, close means 2 %", [300, 305], true],
    ["on a short path, 2 % would be below clock precision", [2, 2.7], true],
    ["two distant ones do not", [20, 24], false],
    ["agreeing noise counts only if nothing was faster", [24, 20, 24.1], false],
    ["a late pair confirms an early one", [31, 20, 44, 20.1], true],
  ] as const)("%s", (_name, rttsMs, agree) => {
    expect(triesAgree(rttsMs)).toBe(agree);
  });
});
