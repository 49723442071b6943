import { type TSchema, Type } from 'typebox';
import { QUESTION_TYPES } from '../../language/judge/rubric.ts';
import { nanoToUsd } from '../../runtime/money.ts';
import type { EvaluationRow } from '../../storage/queries/evaluations.ts';
import type { JudgeBatchItem, JudgeBatchProgress, JudgeBatchRow } from '../../storage/queries/judge-batches.ts';
import { nullable, TimeSchema } from './envelope.ts';
import { ModelNameSchema, QuestionsSchema } from './rubric.ts';

/** Limit of candidate, `input` and `context` each: about 50,000 tokens. */
export const MAX_CHARACTERS = 200_000;
export const METADATA_MAX_BYTES = 2048;

const SamplesSchema = Type.Integer({
  minimum: 1,
  maximum: 5,
  default: 1,
  description:
    'Number of times the judge is asked, each time with the answers in another order. The most frequent answer wins, and `confidence` is its share. Each sample is billed. Tandem extension.',
});

const SegmentSchema = Type.Object(
  {
    leg: Type.Optional(Type.String({ maxLength: 64, description: 'Speaker, as in the transcript of a call.' })),
    speaker: Type.Optional(nullable(Type.String({ maxLength: 64, description: 'Speaker, as POST /stt returns it.' }))),
    text: Type.String({ maxLength: MAX_CHARACTERS, description: 'Transcribed text.' }),
    start: Type.Optional(Type.Number({ description: 'Start, in seconds.' })),
  },
  { additionalProperties: true },
);

const TextPartSchema = Type.Object(
  {
    type: Type.String({ maxLength: 32, description: '`text`.' }),
    text: Type.Optional(Type.String({ maxLength: MAX_CHARACTERS })),
  },
  { additionalProperties: true },
);

/** Candidates have several alternative fields; `readCandidate` requires exactly one. */
export const EvaluateBody = Type.Object(
  {
    rubric_id: Type.Optional(
      Type.String({ maxLength: 64, description: 'Rubric to evaluate against. Alternative to `questions`.' }),
    ),
    questions: Type.Optional(QuestionsSchema),
    model: Type.Optional(ModelNameSchema),
    output: Type.Optional(Type.String({ maxLength: MAX_CHARACTERS, description: 'Text to evaluate.' })),
    transcript: Type.Optional(
      Type.Union(
        [
          Type.Object(
            { segments: Type.Array(SegmentSchema, { maxItems: 20_000 }) },
            {
              additionalProperties: true,
              description: 'The `data` of GET /dialer/click2call/{id}/transcript, or the response of POST /stt.',
            },
          ),
          Type.String({ maxLength: MAX_CHARACTERS, description: 'The `text` of POST /stt.' }),
        ],
        { description: 'Conversation or recording to evaluate.' },
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
                  Type.String({ maxLength: MAX_CHARACTERS }),
                  Type.Array(TextPartSchema, { maxItems: 256, description: 'Content parts, all of type `text`.' }),
                ]),
              ),
            ),
            tool_calls: Type.Optional(
              nullable(
                Type.Array(Type.Unknown(), {
                  maxItems: 128,
                  description: 'Tool calls. Their names and arguments are evaluated.',
                }),
              ),
            ),
          },
          { additionalProperties: true },
        ),
        { maxItems: 2_000, description: 'Conversation to evaluate, in the format of chat completions.' },
      ),
    ),
    call_id: Type.Optional(
      Type.String({
        maxLength: 128,
        description:
          'Transcribed call to evaluate, which you placed: its call_id or reference_id. A key with scopes also needs `recordings:read`. Tandem extension.',
      }),
    ),
    input: Type.Optional(
      nullable(
        Type.String({ maxLength: MAX_CHARACTERS, description: 'Prompt or question that the candidate answers.' }),
      ),
    ),
    context: Type.Optional(
      nullable(Type.String({ maxLength: MAX_CHARACTERS, description: 'Background information for the judge.' })),
    ),
    samples: Type.Optional(SamplesSchema),
    metadata: Type.Optional(
      nullable(
        Type.Object(
          {},
          {
            additionalProperties: true,
            description: `Any JSON object of at most ${METADATA_MAX_BYTES} bytes, returned with the evaluation.`,
          },
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
  answer: Type.String({ description: 'Answer: always one of the criteria.' }),
  reason: Type.String({ description: 'Reason for the answer.' }),
  confidence: Type.Number({
    description:
      'Confidence, 0 to 1: the estimate of the judge, or with several samples the share that gave the answer. Halved if the judge quotes evidence and none of it occurs in the candidate.',
  }),
  evidence: Type.Array(Type.String(), { description: 'Verbatim quotes from the candidate.' }),
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
  id: Type.String({ format: 'uuid', description: 'Id of the evaluation.' }),
  rubric_id: nullable(
    Type.String({ format: 'uuid', description: 'Rubric. Null if the request sent its own questions.' }),
  ),
  model: Type.String({ description: 'Versioned id of the model.', examples: ['qwen3-8b-q4'] }),
  results: Type.Unsafe<unknown>({
    type: 'object',
    description: 'Results by question key.',
    additionalProperties: ResultSchema,
    examples: [RESULTS_EXAMPLE],
  }),
  summary: Type.String({
    description: 'Summary of the evaluation.',
    examples: ['A friendly answer that covers the question.'],
  }),
  usage: Type.Object({
    prompt_tokens: Type.Integer({ description: 'Tokens of the prompts.', examples: [612] }),
    completion_tokens: Type.Integer({ description: 'Tokens of the answers.', examples: [88] }),
    total_tokens: Type.Integer({ description: 'Billed tokens.', examples: [700] }),
  }),
  cost_usd: Type.Number({ description: 'Charge, in USD.', examples: [0.014] }),
  latency_ms: Type.Integer({ description: 'Duration, in milliseconds.', examples: [1840] }),
  samples: Type.Integer({ description: 'Number of times the judge was asked.', examples: [1] }),
  seed: Type.Integer({
    description: 'Seed for the order in which the answers were shown.',
    examples: [1_730_518_733],
  }),
  call_id: nullable(Type.String({ description: 'Evaluated call. Null if it was not a call.', examples: [null] })),
  batch_id: nullable(
    Type.String({ format: 'uuid', description: 'Batch that started the evaluation.', examples: [null] }),
  ),
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
  name: Type.String({ description: 'Model id or alias.', examples: ['jev-latest'] }),
  description: Type.String({ description: 'Description.', examples: ['Alias of qwen3-8b-q4.'] }),
  release_date: Type.String({ format: 'date', description: 'Release date.', examples: ['2026-01-01'] }),
});

export const BatchBody = Type.Object(
  {
    rubric_id: Type.String({ maxLength: 64, description: 'Rubric to evaluate against.' }),
    model: Type.Optional(ModelNameSchema),
    samples: Type.Optional(SamplesSchema),
    call_ids: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 128, pattern: '^[A-Za-z0-9._:-]+$' }), {
        minItems: 1,
        maxItems: 1000,
        description: 'Calls to evaluate, at most 1000. Alternative to the filters below.',
      }),
    ),
    from: Type.Optional(Type.String({ description: 'Only calls created at or after this time. ISO 8601.' })),
    to: Type.Optional(Type.String({ description: 'Only calls created before this time. ISO 8601.' })),
    state: Type.Optional(Type.Enum(['completed', 'failed', 'rejected'], { description: 'Only calls in this state.' })),
    agent_number: Type.Optional(
      Type.String({ description: 'Only calls to this agent, in any format that placing a call accepts.' }),
    ),
  },
  {
    additionalProperties: false,
    examples: [{ rubric_id: 'c0a8e7d2-4a3b-4c1d-9e8f-1a2b3c4d5e6f', from: '2026-01-01', state: 'completed' }],
  },
);

const BATCH_PROPERTIES = {
  id: Type.String({ format: 'uuid', description: 'Id of the batch.' }),
  status: Type.Enum(['pending', 'running', 'completed', 'stopped'], {
    description: '`stopped`: the remaining calls are not evaluated. Start another batch for them.',
  }),
  stop_reason: nullable(
    Type.String({
      description:
        'Error code that stopped the batch, such as INSUFFICIENT_CREDITS, MODEL_NOT_FOUND, LLM_UNAVAILABLE or FORBIDDEN.',
      examples: [null],
    }),
  ),
  rubric_id: Type.String({ format: 'uuid', description: 'Rubric.' }),
  rubric_name: Type.String({ description: 'Name of the rubric when the batch started.', examples: ['Support call'] }),
  model: nullable(
    Type.String({ description: 'Model id or alias. Null: the default model.', examples: ['jev-latest'] }),
  ),
  samples: Type.Integer({ description: 'Number of times the judge is asked per call.', examples: [1] }),
  filter: Type.Object(
    {},
    {
      additionalProperties: true,
      description: 'Filters or call ids, as sent.',
      examples: [{ from: '2026-01-01', state: 'completed' }],
    },
  ),
  total: Type.Integer({ description: 'Number of calls.', examples: [42] }),
  judged: Type.Integer({ description: 'Number of evaluated calls.', examples: [40] }),
  failed: Type.Integer({ description: 'Number of calls that could not be evaluated.', examples: [1] }),
  pending: Type.Integer({ description: 'Number of remaining calls.', examples: [1] }),
  cost_usd: Type.Number({ description: 'Charge so far, in USD.', examples: [0.56] }),
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
    description: 'Number of times each answer was given, by question key.',
    additionalProperties: { type: 'object', additionalProperties: { type: 'integer' } },
    examples: [{ solved: { yes: 31, no: 9 } }],
  }),
  evaluations: Type.Array(Type.Object({ call_id: CallIdSchema, evaluation_id: Type.String({ format: 'uuid' }) }), {
    description: 'Evaluations. Read them with GET /judge/evaluations/{id}.',
  }),
  failures: Type.Array(
    Type.Object({
      call_id: CallIdSchema,
      code: Type.String({
        description:
          'TRANSCRIPT_EMPTY, TRANSCRIPT_NOT_FINISHED, CALL_NOT_FINISHED, JUDGE_ANSWER_INVALID, CONTEXT_LENGTH_EXCEEDED or another code.',
        examples: ['TRANSCRIPT_EMPTY'],
      }),
    }),
    { description: 'Calls that could not be evaluated. They are free.' },
  ),
});

export const StartedBatchSchema = Type.Object({
  id: Type.String({ format: 'uuid' }),
  status: Type.Literal('pending'),
  total: Type.Integer({ description: 'Number of calls to evaluate.', examples: [42] }),
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
    // `fromEntries` defines properties, so a question named `__proto__` is safe.
    answers: Object.fromEntries([...counts].map(([question, given]) => [question, Object.fromEntries(given)])),
    evaluations: judged.map(({ callId, evaluationId }) => ({ call_id: callId, evaluation_id: evaluationId })),
    failures: failed.map(({ callId, error }) => ({ call_id: callId, code: error })),
  };
}
