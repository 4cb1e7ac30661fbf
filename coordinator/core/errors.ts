/**
 * Every error class of the project, with a stable code. Expected outcomes (a probe that timed out, a robots ban, a 404) are
 * values. These errors are thrown only when the caller cannot go on. The comment on each class says what happens next.
 */
export abstract class NearcrawlError extends Error {
  abstract readonly code: string;

  override get name(): string {
    return this.constructor.name;
  }
}

/** Stops the start. One message lists every fault in the settings. */
export class ConfigError extends NearcrawlError {
  readonly code = "NC_CONFIG";
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(
      `${faults.length === 1 ? "a setting is" : `${faults.length} settings are`} wrong:\n  ${faults.join("\n  ")}`,
    );
    this.faults = faults;
  }
}

/** Stops that import and leaves the tree unchanged: the file is not what it claims to be. */
export class SourceFileError extends NearcrawlError {
  readonly code = "NC_SOURCE_FILE";
  readonly file: string;
  readonly line: number | null;
  /** The fault without file and line. */
  readonly reason: string;

  constructor(file: string, line: number | null, reason: string, options?: ErrorOptions) {
    super(`${file}${line === null ? "" : `:${line}`}: ${reason}`, options);
    this.file = file;
    this.line = line;
    this.reason = reason;
  }
}

/** The command ends with exit code 1: the cache of registry files is in use, damaged or incomplete. */
export class CacheError extends NearcrawlError {
  readonly code = "NC_CACHE";
}

/** The command ends with exit code 2: the argument does not exist or is malformed. */
export class UsageError extends NearcrawlError {
  readonly code = "NC_USAGE";
}

/** The command ends with exit code 2 and the tree is unchanged: many subnets in use would be removed without confirmation. */
export class RemovesInUse extends UsageError {}

/** Like RemovesInUse, if remaining subnets would lose many facts (holders, countries, published places). */
export class LosesFacts extends UsageError {}

/** Nothing is written: another coordinator of this database is the leader now and decides this itself. */
export class NoLongerLeads extends NearcrawlError {
  readonly code = "NC_NO_LONGER_LEADS";

  constructor() {
    super("another coordinator of this database leads by now, and decides this");
  }
}

/** The coordinator restarts under another number: its sessions were ended by others, and it writes nothing more. */
export class Replaced extends NearcrawlError {
  readonly code = "NC_REPLACED";

  constructor() {
    super("other coordinators took this one for frozen, and have taken over from it");
  }
}

/** Closes only that session: a peer broke the protocol. The reason is sent to it in words. */
export class ProtocolError extends NearcrawlError {
  readonly code = "NC_PROTOCOL";
}

/** The command ends with exit code 1: the database cannot be started, reached or migrated. */
export class DatabaseError extends NearcrawlError {
  readonly code = "NC_DATABASE";
}

/** The command ends with exit code 1: a process of the run did not come up. */
export class StartError extends NearcrawlError {
  readonly code = "NC_START";
}

/**
 * Nothing is written because the machine's clock is wrong. At the start, the command ends with exit code 1. Later, work
 * resumes once the clock is right.
 */
export class ClockError extends NearcrawlError {
  readonly code = "NC_CLOCK";
}

/** The command ends with exit code 1 and keeps what was exported: the receiver does not accept the rest. */
export class ExportError extends NearcrawlError {
  readonly code = "NC_EXPORT";
}
