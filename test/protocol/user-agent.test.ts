import { describe, expect, it } from "vitest";
import { contactPageOf, partnerContact, userAgent, userAgentOf } from "#protocol/user-agent";

const base = "Nearcrawl/0.1 (+https://crawl.example.org/about-crawler)";

describe("the User-Agent", () => {
  it("names the partner in a comment after ours, where it fits", () => {
    expect(userAgentOf(base, undefined)).toBe(base);
    expect(userAgentOf(base, "abuse@partner.example")).toBe(`${base} (hosted by: abuse@partner.example)`);
    expect(userAgentOf(base + "x".repeat(140), "abuse@partner.example")).toBe(base + "x".repeat(140));
  });

  it.each(["abuse@partner.example", "a", "https://partner.example/abuse desk"])("takes %s", (contact) => {
    expect(userAgent.safeParse(userAgentOf(base, partnerContact.parse(contact))).success).toBe(true);
  });

  it.each(["", " a", "a ", "a) Mozilla/5.0 (b", "a\\b", "a\r\nX: y", "ä", "x".repeat(79)])(
    "refuses a contact that could inject text: %j",
    (contact) => {
      expect(partnerContact.safeParse(contact).success).toBe(false);
    },
  );

  it("names the contact page, or none", () => {
    expect(contactPageOf(base)?.origin).toBe("https://crawl.example.org");
    expect(contactPageOf("Nearcrawl/test")).toBeNull();
  });
});
