import { type TSchema, Type } from 'typebox';
import { QUESTION_TYPES } from '../../language/judge/rubric.ts';
import type { EvaluationRow } from '../../storage/queries/evaluations.ts';
import type { JudgeBatchItem, JudgeBatchProgress, JudgeBatchRow } from '../../storage/queries/judge-batches.ts';
import { nullable, TimeSchema } from './envelope.ts';
import { nanoToUsd } from './money.ts';
import { ModelNameSchema, QuestionsSchema } from './rubric.ts';

/** Of the candidate, `input` and `context` each; some 50,000 tokens. */
export const MOST_CHARACTERS = 200_000;
export const METADATA_MAX_BYTES = 2048;

const SamplesSchema = Type.Integer({
  minimum: 1,
  maximum: 5,
  default: 1,
  description:
    'How often the judge is asked, each time with the answers in another order. Of several the answer that most gave is taken, and `confidence` is the share of them. Each costs as much as one. Beyond the specification.',
});

const SegmentSchema = Type.Object(
  {
    leg: Type.String({ maxLength: 64, description: 'Who said it: `agent`, `customer`.' }),
    text: Type.String({ maxLength: MOST_CHARACTERS }),
    start: Type.Optional(Type.Number({ description: 'Seconds.' })),
  },
  { additionalProperties: true },
);

const TextPartSchema = Type.Object(
  {
    type: Type.String({ maxLength: 32, description: '`text`.' }),
    text: Type.Optional(Type.String({ maxLength: MOST_CHARACTERS })),
  },
  { additionalProperties: true },
);

/** One of several ways to say what is judged; `readCandidate` sees to it that it is one. */
export const EvaluateBody = Type.Object(
  {
    rubric_id: Type.Optional(Type.String({ maxLength: 64, description: 'A rubric, or `questions`.' })),
    questions: Type.Optional(QuestionsSchema),
    model: Type.Optional(ModelNameSchema),
    output: Type.Optional(Type.String({ maxLength: MOST_CHARACTERS, description: 'A text that is judged.' })),
    transcript: Type.Optional(
      Type.Object(
        { segments: Type.Array(SegmentSchema, { maxItems: 20_000 }) },
        {
          additionalProperties: true,
          description: 'A call: the `data` of GET /dialer/click2call/{id}/transcript as it is.',
        },
      ),
    ),
    messages: Type.Optional(
      Type.Array(
        Type.Object(
          {
            role: Type.String({ maxLength: 64 }),
            content: Type.Optional(
              nullable(
                Type.Union([
                  Type.String({ maxLength: MOST_CHARACTERS }),
                  Type.Array(TextPartSchema, { maxItems: 256, description: 'Parts, all of which are text.' }),
                ]),
              ),
            ),
            tool_calls: Type.Optional(
              nullable(
                Type.Array(Type.Unknown(), { maxItems: 128, description: 'Judged by their names and arguments.' }),
              ),
            ),
          },
          { additionalProperties: true },
        ),
        { maxItems: 2_000, description: 'A conversation, as chat completions have it.' },
      ),
    ),
    call_id: Type.Optional(
      Type.String({
        maxLength: 128,
        description:
          'A call of yours that was transcribed: its id or reference. Takes `recordings:read` of a limited key. Beyond the specification.',
      }),
    ),
    input: Type.Optional(
      nullable(Type.String({ maxLength: MOST_CHARACTERS, description: 'What the candidate was an answer to.' })),
    ),
    context: Type.Optional(
      nullable(Type.String({ maxLength: MOST_CHARACTERS, description: 'What the judge should know about it.' })),
    ),
    samples: Type.Optional(SamplesSchema),
    metadata: Type.Optional(
      nullable(
        Type.Object(
          {},
          { additionalProperties: true, description: `At most ${METADATA_MAX_BYTES} bytes; comes back as it is.` },
        ),
      ),
    ),
  },
  {
    additionalProperties: false,
    examples: [
      {
        questions: { polite: { type: 'boolean', question: 'Is the answer polite?' } },
        input: 'Where is my parcel?',
        output: 'Good morning, Asha! It will be with you on Friday.',
        metadata: { ticket: 4711 },
      },
    ],
  },
);

const ResultSchema = Type.Object({
  type: Type.Enum([...QUESTION_TYPES]),
  answer: Type.String({ description: 'Always one of the criteria.' }),
  reason: Type.String(),
  confidence: Type.Number({
    description:
      '0 to 1: what the judge says of itself, or with several samples the share that gave the answer. Half of it when the judge quotes, and nothing of that occurs in the candidate.',
  }),
  evidence: Type.Array(Type.String(), { description: 'Quotes, each of which occurs in the candidate.' }),
});

const RESULTS_EXAMPLE = {
  polite: {
    type: 'boolean',
    answer: 'yes',
    reason: 'It greets by name and says when the parcel comes.',
    confidence: 0.95,
    evidence: ['Good morning, Asha!'],
  },
};

export const EvaluationSchema: TSchema = Type.Object({
  id: Type.String({ format: 'uuid' }),
  rubric_id: nullable(Type.String({ format: 'uuid', description: 'Null when the questions were sent with it.' })),
  model: Type.String({ description: 'The versioned id.', examples: ['qwen3-8b-q4'] }),
  results: Type.Unsafe<unknown>({
    type: 'object',
    description: 'By key of the question.',
    additionalProperties: ResultSchema,
    examples: [RESULTS_EXAMPLE],
  }),
  summary: Type.String({ examples: ['A friendly answer that says what was asked.'] }),
  usage: Type.Object({
    prompt_tokens: Type.Integer({ examples: [612] }),
    completion_tokens: Type.Integer({ examples: [88] }),
    total_tokens: Type.Integer({ examples: [700] }),
  }),
  cost_usd: Type.Number({ examples: [0.014] }),
  latency_ms: Type.Integer({ examples: [1840] }),
  samples: Type.Integer({ examples: [1] }),
  seed: Type.Integer({ description: 'Of the orders in which answers were shown.', examples: [1_730_518_733] }),
  call_id: nullable(Type.String({ description: 'Of a batch: the call.', examples: [null] })),
  batch_id: nullable(Type.String({ format: 'uuid', examples: [null] })),
  metadata: nullable(Type.Object({}, { additionalProperties: true, examples: [{ ticket: 4711 }] })),
  created_at: TimeSchema,
});

export function presentEvaluation(row: EvaluationRow) {
  const { id, rubricId, model, results, summary, latencyMs, samples, seed, callId, batchId, metadata } = row;
  const promptTokens = row.promptTokens ?? 0;
  const completionTokens = row.completionTokens ?? 0;
  const usage = {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
  return {
    ...{ id, rubric_id: rubricId, model, results, summary, usage, cost_usd: nanoToUsd(row.costNano ?? 0n) },
    ...{ latency_ms: latencyMs, samples, seed, call_id: callId, batch_id: batchId, metadata },
    created_at: row.createdAt.toISOString(),
  };
}

export const JudgeModelSchema = Type.Object({
  name: Type.String({ description: 'An id, or an alias that stands for one.', examples: ['jev-latest'] }),
  description: Type.String({ examples: ['Stands for qwen3-8b-q4.'] }),
  release_date: Type.String({ format: 'date', examples: ['2026-01-01'] }),
});

export const BatchBody = Type.Object(
  {
    rubric_id: Type.String({ maxLength: 64 }),
    model: Type.Optional(ModelNameSchema),
    samples: Type.Optional(SamplesSchema),
    call_ids: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 128, pattern: '^[A-Za-z0-9._:-]+$' }), {
        minItems: 1,
        maxItems: 1000,
        description: 'These calls; or those that the other fields let through, at most 1000.',
      }),
    ),
    from: Type.Optional(Type.String({ description: 'Created at or after: ISO 8601.' })),
    to: Type.Optional(Type.String({ description: 'Created before: ISO 8601.' })),
    state: Type.Optional(Type.Enum(['completed', 'failed', 'rejected'])),
    agent_number: Type.Optional(Type.String({ description: 'In any accepted form.' })),
  },
  {
    additionalProperties: false,
    examples: [{ rubric_id: 'c0a8e7d2-4a3b-4c1d-9e8f-1a2b3c4d5e6f', from: '2026-01-01', state: 'completed' }],
  },
);

const BATCH_PROPERTIES = {
  id: Type.String({ format: 'uuid' }),
  status: Type.Enum(['pending', 'running', 'completed', 'stopped'], {
    description: '`stopped`: the calls that are left are not judged; start another batch with them.',
  }),
  stop_reason: nullable(
    Type.String({
      description: 'INSUFFICIENT_CREDITS, MODEL_NOT_FOUND, LLM_UNAVAILABLE, FORBIDDEN or another code.',
      examples: [null],
    }),
  ),
  rubric_id: Type.String({ format: 'uuid' }),
  rubric_name: Type.String({ description: 'As it was when the batch began.', examples: ['Support call'] }),
  model: nullable(Type.String({ examples: ['jev-latest'] })),
  samples: Type.Integer({ examples: [1] }),
  filter: Type.Object({}, { additionalProperties: true, examples: [{ from: '2026-01-01', state: 'completed' }] }),
  total: Type.Integer({ description: 'Calls.', examples: [42] }),
  judged: Type.Integer({ examples: [40] }),
  failed: Type.Integer({ examples: [1] }),
  pending: Type.Integer({ examples: [1] }),
  cost_usd: Type.Number({ examples: [0.56] }),
  created_at: TimeSchema,
  updated_at: TimeSchema,
  ended_at: nullable(TimeSchema),
};

const CallIdSchema = Type.String({ examples: ['2f1f8c1e-5a53-4b1e-8a2b-0c6a1b9a7d10'] });

export const ListedBatchSchema = Type.Object(BATCH_PROPERTIES);
export const BatchSchema = Type.Object({
  ...BATCH_PROPERTIES,
  answers: Type.Unsafe<unknown>({
    type: 'object',
    description: 'How often each answer was given, by question.',
    additionalProperties: { type: 'object', additionalProperties: { type: 'integer' } },
    examples: [{ solved: { yes: 31, no: 9 } }],
  }),
  evaluations: Type.Array(Type.Object({ call_id: CallIdSchema, evaluation_id: Type.String({ format: 'uuid' }) }), {
    description: 'For GET /judge/evaluations/{id}.',
  }),
  failures: Type.Array(
    Type.Object({
      call_id: CallIdSchema,
      code: Type.String({
        description:
          'TRANSCRIPT_EMPTY, TRANSCRIPT_NOT_FINISHED, CALL_NOT_FINISHED, JUDGE_ANSWER_INVALID, CONTEXT_LENGTH_EXCEEDED or another code. Nothing was charged.',
        examples: ['TRANSCRIPT_EMPTY'],
      }),
    }),
  ),
});

export const StartedBatchSchema = Type.Object({
  id: Type.String({ format: 'uuid' }),
  status: Type.Literal('pending'),
  total: Type.Integer({ description: 'Calls that will be judged.', examples: [42] }),
});

export function presentListedBatch(row: JudgeBatchRow, progress: JudgeBatchProgress | undefined) {
  const { id, status, stopReason, rubricId, rubricName, model, samples, filter, total } = row;
  const { judged = 0, failed = 0, costNano = 0n } = progress ?? {};
  return {
    ...{ id, status, stop_reason: stopReason, rubric_id: rubricId, rubric_name: rubricName, model, samples, filter },
    ...{ total, judged, failed, pending: total - judged - failed, cost_usd: nanoToUsd(costNano) },
    created_at: row.createdAt.toISOString(),
    updated_at: row.updatedAt.toISOString(),
    ended_at: row.endedAt?.toISOString() ?? null,
  };
}

export interface BatchParticulars {
  answers: readonly { question: string; answer: string; count: number }[];
  judged: readonly JudgeBatchItem[];
  failed: readonly JudgeBatchItem[];
}

export function presentBatch(
  row: JudgeBatchRow,
  { progress, answers, judged, failed }: BatchParticulars & { progress: JudgeBatchProgress | undefined },
) {
  const counts = new Map<string, [string, number][]>();
  for (const { question, answer, count } of answers) {
    counts.set(question, [...(counts.get(question) ?? []), [answer, count]]);
  }
  return {
    ...presentListedBatch(row, progress),
    // `fromEntries` defines fields, so that a question `__proto__` is one.
    answers: Object.fromEntries([...counts].map(([question, given]) => [question, Object.fromEntries(given)])),
    evaluations: judged.map(({ callId, evaluationId }) => ({ call_id: callId, evaluation_id: evaluationId })),
    failures: failed.map(({ callId, error }) => ({ call_id: callId, code: error })),
  };
}
