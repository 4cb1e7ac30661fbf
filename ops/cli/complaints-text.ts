/** Complaints for people: a table, or one of them with the paragraph that can be sent on. */

import { type Complaint, deedsParagraph, partnerLines } from "#coordinator/opt-outs/complaints";
import { formatTable } from "./output.ts";
import { printable } from "./printable.ts";

export function complaintsText(list: readonly Complaint[]): string {
  if (list.length === 0) return "nobody complains";
  return formatTable(
    [
      { title: "#", align: "right" },
      { title: "at" },
      { title: "target" },
      { title: "from" },
      { title: "requests", align: "right" },
      { title: "crawlers" },
      { title: "" },
    ],
    list.map(({ complaintId, createdAt, target, reporter, deeds, words, closedAt, closingWords }) => [
      String(complaintId),
      createdAt.toISOString().slice(0, 16).replace("T", " "),
      printable(target, 50),
      printable(reporter, 30),
      String(deeds.requests),
      deeds.crawlers.map(({ name }) => name).join(", "),
      printable(closedAt === null ? words : `closed: ${closingWords ?? ""}`, 50),
    ]),
  );
}

export function complaintText(complaint: Complaint): string {
  const { complaintId, target, reporter, words, requester, closedAt, closingWords } = complaint;
  const from = requester === null ? "" : `, by the form from ${requester}`;
  const partners = partnerLines(complaint);
  return [
    printable(`Complaint ${complaintId} about ${target}, from ${reporter}${from}:`),
    ...words.split("\n").map((line) => `> ${printable(line, 2000)}`),
    "",
    "To be sent on as it stands:",
    "",
    printable(deedsParagraph(complaint), 4000),
    "",
    partners.length === 0 ? "No crawler of the fleet had asked it for anything." : "Hosted by partners:",
    ...partners.map((line) => `  ${printable(line)}`),
    closedAt === null
      ? `Then: nearcrawl complaints close ${complaintId} --words TEXT`
      : printable(`Closed on ${closedAt.toISOString().slice(0, 10)}: ${closingWords ?? ""}`),
  ].join("\n");
}
