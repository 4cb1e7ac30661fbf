/** Policies that operators change while coordinators run: what is in force, what is stored, and who changed it when. */
import type { PolicyValue } from "./catalogue.ts";
import type { PolicyName } from "./descriptions.ts";
import type { PolicySettings } from "./schema.ts";

/** What holds now: the file's values with what operators have changed put over them. Read it anew each time. */
export interface PoliciesInForce {
  readonly settings: PolicySettings;
}

/** As it stands in the database: not checked yet. */
export interface StoredSetting {
  readonly name: string;
  readonly value: unknown;
  readonly changedAt: Date;
  readonly changedBy: string;
}

export interface StoredPolicies {
  /** Of the latest change; 0: nobody has changed anything. */
  readonly version: number;
  readonly settings: readonly StoredSetting[];
  /** What the file of the coordinator that started last says, not checked; null: none has started. */
  readonly file: unknown;
}

export interface ChangedPolicy {
  readonly name: PolicyName;
  /** Null: the file's value. */
  readonly before: PolicyValue | null;
  readonly after: PolicyValue | null;
}

export interface PolicyVersion {
  readonly version: number;
  readonly changedAt: Date;
  readonly changedBy: string;
  /** Why, as the operator says. */
  readonly words: string;
  /** The version that this one takes back. */
  readonly takesBack: number | null;
  readonly changes: readonly ChangedPolicy[];
}

export type NewPolicyVersion = Omit<PolicyVersion, "version">;

export interface PolicyStore {
  read(): Promise<StoredPolicies>;
  /** One transaction; running coordinators are told. Null: somebody has changed something since `basedOn`. */
  save(version: NewPolicyVersion, basedOn: number): Promise<number | null>;
  /** The latest first. */
  history(limit: number): Promise<PolicyVersion[]>;
  version(version: number): Promise<PolicyVersion | null>;
  /** What this coordinator's file says. */
  stateFile(settings: PolicySettings, now: Date): Promise<void>;
  onChange(changed: () => void): Promise<{ stop(): Promise<void> }>;
}
