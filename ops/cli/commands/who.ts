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
    help: `

Examples:
  nearcrawl who https://www.example.org/
  nearcrawl who 198.51.100.0/24
  nearcrawl who Example Networks
  nearcrawl who country:DE

A country, an organisation or a range answers with what lies in its space.
The same as a page: /who?q=…`,
  });
}
