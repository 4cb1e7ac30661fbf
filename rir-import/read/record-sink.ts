/** Passes readers' records to their receiver except for placeholders, and counts each in the report. */
import type { NetworkRecord, OrganisationRecord, RecordSink } from "../formats/record.ts";
import { reasonToDrop } from "../tree/precedence.ts";
import type { FileReportBuilder } from "./file-report.ts";

export interface RecordReceiver {
  addNetwork(record: NetworkRecord, file: string): void;
  addOrganisation(record: OrganisationRecord): void;
}

export function sinkOf(file: string, report: FileReportBuilder, receiver: RecordReceiver): RecordSink {
  return {
    record: (record) => {
      if (record.type === "organisation") {
        receiver.addOrganisation(record);
        report.keep(record.registry);
        return;
      }
      const reason = reasonToDrop(record);
      if (reason !== null) {
        report.ignore(reason);
        return;
      }
      receiver.addNetwork(record, file);
      report.keep(record.registry);
    },
    ignore: (reason) => report.ignore(reason),
    malformed: (problem) => report.malformed(problem),
    warn: (text) => report.warn(text),
    facts: (facts) => report.facts(facts),
  };
}
