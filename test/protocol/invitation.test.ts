/** Invitations as partners paste them: whole, cut off, mistyped, expired. */
import { describe, expect, it } from "vitest";
import { UsageError } from "#core/errors";
import { seededRandom } from "#core/random";
import { formatInvitation, type Invitation, parseInvitation } from "#protocol/invitation";

const invitation: Invitation = {
  coordinatorUrl: "wss://search.example/crawler",
  name: "athens-1",
  secret: "inv_0123456789abcdefghij",
  certificatePin: "A".repeat(43),
  releaseKeys: ["B".repeat(43)],
  releaseThreshold: 1,
  expiresAt: "2026-12-01T00:00:00.000Z",
};

describe("an invitation", () => {
  it("reads as it was written", () => {
    const token = formatInvitation(invitation);

    expect(token).toMatch(/^nc1\.[A-Za-z0-9_-]+$/);
    expect(parseInvitation(token)).toEqual(invitation);
  });

  it("may have been wrapped over lines by a mail program", () => {
    const token = formatInvitation(invitation).replace(/(.{60})/g, "$1\r\n  ");

    expect(parseInvitation(` ${token}\n`)).toEqual(invitation);
  });

  it("that lost its end is reported so, wherever it was cut", () => {
    const token = formatInvitation(invitation);

    for (let length = 4; length < token.length; length += 1) {
      expect(() => parseInvitation(token.slice(0, length))).toThrow(/cut off or damaged|is damaged/);
    }
  });

  it.each([
    ["", /begins with ""/],
    ["hello world", /begins with "helloworld"/],
    ["inv_0123456789abcdefghij", /an invitation with "nc1\."/],
    ["nc2.eyJhIjoxfQ", /of version 2, and this program knows version 1: get the newest/],
    ["nc1.abc+def", /a character that none has, "\+", at place 8/],
    [`nc1.${"A".repeat(5000)}`, /has 5004 characters/],
  ])("that is invalid names the reason: %s", (token, why) => {
    expect(() => parseInvitation(token)).toThrow(why);
  });

  it("that was mistyped anywhere is an invitation or a readable fault, never a crash", () => {
    const token = formatInvitation(invitation);
    const random = seededRandom(42);
    const pick = (below: number) => Math.floor(random() * below);

    for (let round = 0; round < 2000; round += 1) {
      const at = pick(token.length);
      const mistyped = token.slice(0, at) + String.fromCharCode(pick(300)) + token.slice(at + pick(3));
      try {
        expect(parseInvitation(mistyped).name).toMatch(/^[a-z0-9]/);
      } catch (error) {
        expect(error).toBeInstanceOf(UsageError);
      }
    }
  });

  it.each([
    [{ coordinatorUrl: "ws://search.example/crawler" }, "coordinatorUrl"],
    [{ coordinatorUrl: "wss://user:pass@search.example/crawler" }, "coordinatorUrl"],
    [{ name: "../../etc" }, "name"],
    [{ secret: "a-plain-key-0123456789" }, "secret"],
    [{ certificatePin: "short" }, "certificatePin"],
    [{ releaseKeys: ["x"] }, "releaseKeys.0"],
    [{ expiresAt: "tomorrow" }, "expiresAt"],
  ])("with an impossible value names the field: %o", (changes, field) => {
    const text = JSON.stringify({ ...invitation, ...changes });
    const token = `nc1.${Buffer.from(text).toString("base64url")}`;

    expect(() => parseInvitation(token)).toThrow(`is damaged (${field}: `);
  });
});
