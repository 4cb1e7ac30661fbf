/**
 * Matches messages of pg, PgBouncer and Postgres that have no distinguishing code. They are kept in one place because
 * other versions may word them differently.
 */

/** pg's messages about a lost connection, which have no code. */
export const lostWords =
  /^(Connection terminated|timeout exceeded when trying to connect|timeout expired|Client has encountered|Client was closed)/;

/** Timeout messages of pg and pg-pool, which have no code. */
export const timeoutWords = /timeout/i;

/** pg's message when a server closed the connection before it answered. */
export const closedWords = /terminated unexpectedly/;

/** Postgres' message during recovery. Its SQLSTATE (57P03) also means starting and stopping. */
export const recoveringWords = /not yet accepting connections/;

/** PgBouncer's message for too many connections. Postgres has SQLSTATE 53300 for this. */
export const usedUpWords = /no more connections allowed/i;

/** The system's message for a full disk, which Postgres passes on under various SQLSTATEs. */
export const fullDiskWords = /No space left on device/;

/* Messages in the log of a Postgres that did not start. The log has no codes. */

/**
 * Temporary failures: another process is starting the server too (and may still be opening the home for initdb), or the
 * last server's backends are still ending. A folder that stays closed is reported before the start.
 */
export const passingFailure =
  /could not access directory|lock file ".*" already exists|shared memory block .* in use|another (server|postmaster)|Address already in use|terminating/i;

/** The data folder cannot be recovered, so another start would not help. */
export const lastingFailure =
  /startup process \(PID \d+\) (exited with exit code|was terminated by signal 6)/;

/** The first group is the name of the lock file. */
export const emptyLock = /lock file "([^"]+)" is empty/;
