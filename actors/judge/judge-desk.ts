import type { Candidate, RubricQuestions } from '../../language/judge/rubric.ts';
import type { Charge } from '../../storage/ledger.ts';
import type { EvaluationRow } from '../../storage/queries/evaluations.ts';
import type { JudgeBatchRow } from '../../storage/queries/judge-batches.ts';

/** Judge evaluations for `http/`. Implemented in `judge-desk.actor.ts`; HTTP tests may use a fake. */
export interface JudgeDesk {
  /** Lists judge models with aliases; [] if none is configured. */
  models(): Promise<{ models: JudgeModel[]; cached: boolean }>;
  /**
   * Judges a candidate and charges for the tokens, both or neither. Abort the signal to cancel; then nothing is owed.
   * @throws TandemError `LLM_NOT_CONFIGURED`, `MODEL_NOT_FOUND`, `INSUFFICIENT_CREDITS`, `JUDGE_ANSWER_INVALID`,
   * `CONTEXT_LENGTH_EXCEEDED`, `LLM_UNAVAILABLE`, `LLM_RATE_LIMITED`, `LLM_TIMEOUT`, `LLM_REQUEST_REFUSED`,
   * `CALL_NOT_FOUND`, `SHUTTING_DOWN`; the signal's reason
   */
  evaluate(request: EvaluateRequest, signal: AbortSignal): Promise<JudgedCandidate>;
  /**
   * Starts to judge calls in the background; a batch survives restarts. Each judged call costs as much as an
   * evaluation.
   * @throws TandemError `LLM_NOT_CONFIGURED`, `MODEL_NOT_FOUND`, `CALL_NOT_FOUND`, `TRANSCRIPT_NOT_OWNED`,
   * `VALIDATION_FAILED` if too many calls match
   */
  startBatch(request: StartBatchRequest): Promise<JudgeBatchRow>;
}

export interface JudgeModel {
  /** Id or alias, for `model` of a rubric or an evaluation. */
  name: string;
  /** For users. */
  description: string;
  releasedAt: Date;
}

export interface JudgedCandidate {
  evaluation: EvaluationRow;
  /** Null: it was free. */
  charge: Charge | null;
}

export interface JudgeCaller {
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
}

export interface EvaluateRequest extends JudgeCaller {
  /** Null: the request has its own questions. */
  rubricId: string | null;
  questions: RubricQuestions;
  candidate: Candidate;
  /** Call whose transcript is the candidate; null if there is none. */
  callId: string | null;
  /** Prompt that the candidate answers. */
  input: string | null;
  /** Background information. */
  context: string | null;
  /** Id or alias; null: the default model. */
  model: string | null;
  samples: number;
  metadata: unknown;
}

export interface StartBatchRequest extends JudgeCaller {
  rubric: { id: string; name: string; questions: RubricQuestions };
  model: string | null;
  samples: number;
  /** Call ids, or a filter. */
  calls: { callIds: readonly string[] } | { state?: string; from?: Date; to?: Date; agentNumber?: string };
  /** Requested filter, as the API shows it. */
  filter: Record<string, unknown>;
}

export const MOST_CALLS_PER_BATCH = 1_000;
