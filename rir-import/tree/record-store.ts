/**
 * What the readers yield, kept as columns and bytes until all files are read: networks by family, the ways in
 * which they name their holders, organisations. Several threads fill one each; the first absorbs the others
 * in the order of their files, and it is as if one had read them all.
 */
import { TextPool, type TextPoolParts } from "#core/columns";
import type { NetworkRecord, OrganisationRecord } from "../formats/record.ts";
import type { RecordReceiver } from "../read/read-sources.ts";
import { type CandidateParts, CandidateTable } from "./candidate-table.ts";
import { HolderReferences, type ReferenceParts } from "./holder-references.ts";

export interface RecordParts {
  readonly texts: TextPoolParts;
  readonly references: ReferenceParts;
  readonly ipv4: CandidateParts;
  readonly ipv6: CandidateParts;
}

export class RecordStore implements RecordReceiver {
  readonly texts = new TextPool();
  readonly references = new HolderReferences(this.texts);
  readonly ipv4 = new CandidateTable(4);
  readonly ipv6 = new CandidateTable(6);

  addNetwork(record: NetworkRecord, file: string): void {
    // Asked first: an IPv6 record makes its `range` of big integers only when that is read.
    const isIpv6 = (record.ipv6Words ?? null) !== null || record.range.family === 6;
    const holder = this.references.indexOf(record.holder, file);
    (isIpv6 ? this.ipv6 : this.ipv4).add(record, holder, this.texts.intern(record.name));
  }

  addOrganisation(record: OrganisationRecord): void {
    this.references.addOrganisation(record);
  }

  /** Without a copy: valid until the next record. */
  parts(): RecordParts {
    return {
      texts: this.texts.parts(),
      references: this.references.parts(),
      ipv4: this.ipv4.parts(),
      ipv6: this.ipv6.parts(),
    };
  }

  absorb({ texts, references, ipv4, ipv6 }: RecordParts): void {
    const textsHere = this.texts.absorb(texts);
    const referencesHere = this.references.absorb(references, textsHere);
    this.ipv4.absorb(ipv4, referencesHere, textsHere);
    this.ipv6.absorb(ipv6, referencesHere, textsHere);
  }
}
