/** What the partner's commands are given, and how they end. */

export const partnerExitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  refused: 4,
  interrupted: 130,
} as const;

export type PartnerExitCode = (typeof partnerExitCodes)[keyof typeof partnerExitCodes];

/** What each command's work is given. */
export interface PartnerContext {
  /** The crawler's folder, absolute. */
  readonly home: string;
  /** For programs: one JSON value on standard output. */
  readonly json: boolean;
  /** A line for people on standard output. */
  readonly print: (line: string) => void;
  /** A line on standard error. */
  readonly complain: (line: string) => void;
  /** Asks a person; null where nobody is at a terminal. */
  readonly ask: ((question: string) => Promise<boolean>) | null;
  readonly env: PartnerEnvironment;
  readonly now: () => Date;
  /** The command line that starts this program, for words that tell the reader what to type. */
  readonly program: string;
  /** What Node is given to start this program, options included; absent where it cannot be started again. */
  readonly self?: readonly string[];
}

export type PartnerEnvironment = Readonly<Record<string, string | undefined>>;
