/** Codes of session ends: the words stored with each, and the advice to people. */
import { expect, test } from "vitest";
import { adviceOnEnd, sessionEnd } from "#coordinator/place/crawlers/sessions";
import { decodePackedMessage } from "#protocol/codec";
import { FrameReader } from "#protocol/packed/message-frames";
import { packedJson } from "../protocol/packed-json.ts";

test.each([
  ["stops", "its host stopped it", /when its host starts it again/],
  ["joined", "it has joined, and its host has not started it yet", /^Its partner starts it/],
  ["awaits-release", "as it says", /^Offer one to all: nearcrawl release list/],
  ["awaits-key", "as it says", /nearcrawl fleet reinvite/],
  ["lost", "as it says", /ask its partner\.$/],
  ["copied-folder", "as it says", /^Two machines hold its folder/],
] as const)("an end with the code %s has its words and advice", (code, reason, advice) => {
  expect(sessionEnd(code, "as it says")).toEqual({ code, reason });
  expect(adviceOnEnd(code)).toMatch(advice);
});

test.each([[null], ["of-a-later-version"], ["constructor"]])(
  "the stored code %s gets the general advice",
  (code) => {
    expect(adviceOnEnd(code)).toMatch(/^It connects again by itself\. If it stays away, ask its partner/);
  },
);

test("a goodbye with an unknown code or none ends its session by its words", () => {
  const goodbye = (code?: unknown) => ({ type: "crawler:goodbye", code, reason: "the moon is full" });
  const heard = (code?: unknown) =>
    decodePackedMessage(packedJson(JSON.stringify(goodbye(code))), new FrameReader());

  expect(heard("stops")).toEqual(goodbye("stops"));
  for (const code of ["moon", 7, "x".repeat(5000), null, undefined])
    expect(heard(code)).toEqual(goodbye(undefined));
  expect(sessionEnd(null, "the moon is full")).toEqual({ code: null, reason: "the moon is full" });
});
