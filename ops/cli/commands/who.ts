/** `nearcrawl who`: who crawls a URL, host, address, range, organisation, and why (not). */
import type { Command } from "commander";
import { whoApi } from "#coordinator/who/who-api";
import { roomCommand } from "../room-command.ts";
import { whoText } from "../who-text.ts";

export function whoCommand(): Command {
  return roomCommand({
    ...{ name: "who", room: "who", operation: whoApi.who, takes: "q..." },
    says: "who crawls this, and why (not)?",
    text: whoText,
    help: "\n\nExamples:\n  nearcrawl who https://www.example.org/\n  nearcrawl who 198.51.100.0/24\n  nearcrawl who Example Networks\n  nearcrawl who country:DE\n\nA country, an organisation or a range answers with what lies in its space.\nThe same as a page: /who?q=…",
  });
}
