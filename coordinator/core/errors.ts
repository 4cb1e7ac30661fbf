/**
 * Every error class of the project, with a stable code. Expected outcomes (a probe that timed out, a
 * robots ban, a 404) are values, not errors; these are thrown only when the caller cannot go on.
 * The comment on each class says what happens next.
 */
export abstract class NearcrawlError extends Error {
  abstract readonly code: string;

  override get name(): string {
    return this.constructor.name;
  }
}

/** Stops the start: one message lists every fault found in the settings. */
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

/** Stops that import and leaves the tree as it was: the file is not what it claims to be. */
export class SourceFileError extends NearcrawlError {
  readonly code = "NC_SOURCE_FILE";
  readonly file: string;
  readonly line: number | null;
  /** What is wrong, without the file and the line. */
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

/** The command ends with exit code 2: what was asked for does not exist or is not of the stated form. */
export class UsageError extends NearcrawlError {
  readonly code = "NC_USAGE";
}

/** The command ends with exit code 2, and the tree stays as it was: many subnets in use would go, and nobody said that it is meant. */
export class RemovesInUse extends UsageError {}

/** The same, where much of what is known of subnets that stay would go: holders, countries, published places. */
export class LosesFacts extends UsageError {}

/** Nothing is written: another coordinator of this database leads by now, and decides this by itself. */
export class NoLongerLeads extends NearcrawlError {
  readonly code = "NC_NO_LONGER_LEADS";

  constructor() {
    super("another coordinator of this database leads by now, and decides this");
  }
}

/** The coordinator starts over under another number: others have ended its sessions, and nothing of it is written any more. */
export class Replaced extends NearcrawlError {
  readonly code = "NC_REPLACED";

  constructor() {
    super("other coordinators took this one for frozen, and have taken over from it");
  }
}

/** Closes that session, and nothing else: a peer broke the protocol. The reason is sent to it in words. */
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

/** Nothing is written: the machine's clock is wrong. At the start the command ends with exit code 1; later it goes on when it is right. */
export class ClockError extends NearcrawlError {
  readonly code = "NC_CLOCK";
}

/** The command ends with exit code 1, and what was taken stays: whoever the index is exported to does not take the rest. */
export class ExportError extends NearcrawlError {
  readonly code = "NC_EXPORT";
}
