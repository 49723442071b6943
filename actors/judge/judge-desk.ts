import type { Candidate, RubricQuestions } from '../../language/judge/rubric.ts';
import type { Charge } from '../../storage/ledger.ts';
import type { EvaluationRow } from '../../storage/queries/evaluations.ts';
import type { JudgeBatchRow } from '../../storage/queries/judge-batches.ts';

/** Judgements as `http/` sees them. Implemented in `judge-desk.actor.ts`; HTTP tests may use a fake of this interface. */
export interface JudgeDesk {
  /** What there is to judge with, aliases included; [] when nothing is configured. */
  models(): Promise<{ models: JudgeModel[]; cached: boolean }>;
  /**
   * Judges a candidate and charges for the tokens it took, both or neither. The signal is to abort when nobody waits any
   * more: then nothing is owed.
   * @throws TandemError `LLM_NOT_CONFIGURED`, `MODEL_NOT_FOUND`, `INSUFFICIENT_CREDITS`, `JUDGE_ANSWER_INVALID`,
   * `CONTEXT_LENGTH_EXCEEDED`, `LLM_UNAVAILABLE`, `LLM_RATE_LIMITED`, `LLM_TIMEOUT`, `LLM_REQUEST_REFUSED`,
   * `SHUTTING_DOWN`; the signal's reason
   */
  evaluate(request: EvaluateRequest, signal: AbortSignal): Promise<JudgedCandidate>;
  /**
   * Has calls judged one after another, in the background and across restarts. Each that is judged costs what an
   * evaluation costs.
   * @throws TandemError `LLM_NOT_CONFIGURED`, `MODEL_NOT_FOUND`, `CALL_NOT_FOUND`, `TRANSCRIPT_NOT_OWNED`,
   * `VALIDATION_FAILED` when more calls fit than a batch has
   */
  startBatch(request: StartBatchRequest): Promise<JudgeBatchRow>;
}

export interface JudgeModel {
  /** Id or alias: what `model` of a rubric or an evaluation may be. */
  name: string;
  /** For a person. */
  description: string;
  releasedAt: Date;
}

export interface JudgedCandidate {
  evaluation: EvaluationRow;
  /** Null: it cost nothing. */
  charge: Charge | null;
}

export interface JudgeCaller {
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
}

export interface EvaluateRequest extends JudgeCaller {
  /** Null: the questions are the request's own. */
  rubricId: string | null;
  questions: RubricQuestions;
  candidate: Candidate;
  /** What the candidate was an answer to. */
  input: string | null;
  /** What to know about it. */
  context: string | null;
  /** Id or alias; null: the usual one. */
  model: string | null;
  samples: number;
  metadata: unknown;
}

export interface StartBatchRequest extends JudgeCaller {
  rubric: { id: string; name: string; questions: RubricQuestions };
  model: string | null;
  samples: number;
  /** These calls, or those that fit. */
  calls: { callIds: readonly string[] } | { state?: string; from?: Date; to?: Date; agentNumber?: string };
  /** What was asked for, as the API shows it. */
  filter: Record<string, unknown>;
}

export const MOST_CALLS_PER_BATCH = 1_000;
