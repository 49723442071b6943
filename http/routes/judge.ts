import { Type } from 'typebox';
import { MOST_CALLS_PER_BATCH } from '../../actors/judge/judge-desk.ts';
import { type Candidate, candidateOfTranscript, type PlainQuestions } from '../../language/judge/rubric.ts';
import { TandemError } from '../../machines/errors.ts';
import { seconds } from '../../machines/utterances.ts';
import { getCall, isFinalState } from '../../storage/queries/calls.ts';
import { findEvaluation } from '../../storage/queries/evaluations.ts';
import {
  answersOfJudgeBatch,
  findJudgeBatch,
  listJudgeBatches,
  listJudgeBatchItems,
  progressOfJudgeBatches,
} from '../../storage/queries/judge-batches.ts';
import { getTranscript } from '../../storage/queries/transcripts.ts';
import { type Principal, principalOf, requireCredentials } from '../auth.ts';
import { BILLING_HEADERS, billingHeaders } from '../billing-headers.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { endWithClient } from '../credential-watch.ts';
import { readCandidate, requireSomething } from '../judged-candidate.ts';
import { mayHear } from '../playback.ts';
import { PAGE_QUERY, pageOf, paginationOf, REFUSALS, responseOf, success, successOf } from '../schemas/envelope.ts';
import {
  BatchBody,
  BatchSchema,
  EvaluateBody,
  EvaluationSchema,
  JudgeModelSchema,
  ListedBatchSchema,
  presentBatch,
  presentEvaluation,
  presentListedBatch,
  StartedBatchSchema,
} from '../schemas/judge.ts';
import { readMobile } from '../schemas/phone-number.ts';
import { REFERENCE } from '../schemas/placement.ts';
import { readRubricQuestions } from '../schemas/rubric.ts';
import { readTime } from '../schemas/time.ts';
import { validationFailed } from '../validation.ts';
import { requireRubric } from './judge-rubrics.ts';

const TAGS = ['judge'];
/** A transcript of an hour, with the times of its words. */
const BODY_LIMIT_BYTES = 2 ** 20;
const EVALUATED = responseOf({ ...(successOf(EvaluationSchema, 'Judged.') as object), headers: BILLING_HEADERS });

export function judgeRoutes(app: HttpApp, context: HttpContext): void {
  const { sql, judge, limits } = context;

  app.get(
    '/judge/models',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'listJudgeModels',
        summary: 'Models there are to judge with, and aliases that stand for them',
        description:
          'Asked of the model servers at most every five minutes. Evaluations report the versioned id. Empty when no language model is configured.',
        response: {
          200: successOf(
            Type.Object({
              models: Type.Array(JudgeModelSchema),
              cached: Type.Boolean({ description: 'Whether the servers were not asked for it.', examples: [false] }),
            }),
            'The models.',
          ),
          ...REFUSALS,
        },
      },
    },
    async () => {
      const { models, cached } = await judge.models();
      const entries = models.map(({ name, description, releasedAt }) => {
        return { name, description, release_date: releasedAt.toISOString().slice(0, 10) };
      });
      return success({ models: entries, cached });
    },
  );

  app.post(
    '/judge/evaluate',
    {
      config: { access: 'writer' },
      bodyLimit: BODY_LIMIT_BYTES,
      schema: {
        tags: TAGS,
        operationId: 'evaluate',
        summary: 'Have a language model answer a rubric about a text, a conversation or a call',
        description:
          'Send `rubric_id` or `questions`, and one of `output`, `transcript`, `messages` and `call_id`. Answers are always criteria of the rubric; nothing that the candidate says is an instruction. What is judged is not stored, but for quotes in `evidence`. Costs what the tokens cost; a failure, and a client that leaves, costs nothing.',
        body: EvaluateBody,
        response: { 200: EVALUATED, ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { body } = request;
      const principal = principalOf(request);
      const { workspaceId, userId, apiKeyId } = principal;
      const subject = readCandidate(body);
      const own = body.questions === undefined ? null : readRubricQuestions(body.questions);
      const rubric = body.rubric_id === undefined ? null : await requireRubric(sql, { id: body.rubric_id, principal });
      const candidate = 'candidate' in subject ? subject.candidate : await candidateOfCall(subject.callId, principal);
      await using _slot = await limits.acquireSlot({ userId, kind: 'llm' });
      const ended = new AbortController();
      endWithClient(context, { principal, reply, ended });
      try {
        const { evaluation, charge } = await judge.evaluate(
          {
            ...{ workspaceId, userId, apiKeyId, candidate },
            rubricId: rubric?.id ?? null,
            questions: own ?? readRubricQuestions(rubric!.questions as PlainQuestions),
            input: textOf(body.input),
            context: textOf(body.context),
            model: textOf(body.model) ?? rubric?.model ?? null,
            samples: body.samples ?? 1,
            metadata: body.metadata ?? null,
          },
          ended.signal,
        );
        if (charge !== null) reply.headers(billingHeaders(charge));
        return success(presentEvaluation(evaluation));
      } catch (error) {
        if (reply.raw.destroyed) return reply.hijack();
        throw error;
      } finally {
        ended.abort();
      }
    },
  );

  app.get(
    '/judge/evaluations/:id',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'getEvaluation',
        summary: 'One evaluation, for the user who asked for it',
        params: Type.Object({ id: Type.String({ maxLength: 64, description: 'UUID of the evaluation.' }) }),
        response: { 200: successOf(EvaluationSchema, 'The evaluation.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId, userId } = principalOf(request);
      const evaluation = await findEvaluation(sql, { id: request.params.id, workspaceId, userId });
      if (evaluation === null) throw new TandemError('EVALUATION_NOT_FOUND', 'You have no such evaluation.');
      return success(presentEvaluation(evaluation));
    },
  );

  app.post(
    '/judge/batches',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'startJudgeBatch',
        summary: 'Have finished calls judged by a rubric, in the background',
        description:
          'Of the calls that the caller placed, and that were transcribed. Each that is judged is an evaluation and costs what it costs; none is judged or charged twice. Takes `recordings:read` of a limited key.',
        body: BatchBody,
        response: { 202: successOf(StartedBatchSchema, 'Accepted.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { rubric_id: rubricId, call_ids: callIds, model, samples = 1, ...filter } = request.body;
      const principal = principalOf(request);
      requireCredentials(principal, { scope: 'recordings:read' });
      const { workspaceId, userId, apiKeyId } = principal;
      if (callIds !== undefined && Object.keys(filter).length > 0) {
        throw validationFailed([{ path: 'call_ids', message: 'goes without from, to, state and agent_number' }]);
      }
      const from = readTime('from', filter.from);
      const to = readTime('to', filter.to);
      const agentNumber = readMobile('agent_number', filter.agent_number);
      const rubric = await requireRubric(sql, { id: rubricId, principal });
      const fitting = {
        ...(filter.state !== undefined && { state: filter.state }),
        ...(from && { from }),
        ...(to && { to }),
        ...(agentNumber !== undefined && { agentNumber }),
      };
      const { id, name } = rubric;
      const questions = readRubricQuestions(rubric.questions as PlainQuestions);
      const batch = await judge.startBatch({
        ...{ workspaceId, userId, apiKeyId, samples, rubric: { id, name, questions } },
        model: textOf(model) ?? rubric.model,
        calls: callIds === undefined ? fitting : { callIds },
        filter: callIds === undefined ? filter : { call_ids: callIds },
      });
      return reply.code(202).send(success({ id: batch.id, status: batch.status, total: batch.total }));
    },
  );

  app.get(
    '/judge/batches',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'listJudgeBatches',
        summary: 'Batches of the caller, newest first',
        querystring: Type.Object(PAGE_QUERY),
        response: { 200: successOf(pageOf('batches', ListedBatchSchema), 'One page of batches.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId, userId } = principalOf(request);
      const { rows, total } = await listJudgeBatches(sql, { workspaceId, userId }, request.query);
      const progress = await progressOfJudgeBatches(
        sql,
        rows.map(({ id }) => id),
      );
      const batches = rows.map((row) => presentListedBatch(row, progress.get(row.id)));
      return success({ batches, pagination: paginationOf(request.query, total) });
    },
  );

  app.get(
    '/judge/batches/:id',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'getJudgeBatch',
        summary: 'How far a batch is, what was answered how often, and what failed',
        params: Type.Object({ id: Type.String({ maxLength: 64, description: 'UUID of the batch.' }) }),
        response: { 200: successOf(BatchSchema, 'The batch so far.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId, userId } = principalOf(request);
      const batch = await findJudgeBatch(sql, { id: request.params.id, workspaceId, userId });
      if (batch === null) throw new TandemError('JUDGE_BATCH_NOT_FOUND', 'You have no such batch.');
      const { id } = batch;
      const limit = MOST_CALLS_PER_BATCH;
      const [progress, answers, judged, failed] = await Promise.all([
        progressOfJudgeBatches(sql, [id]),
        answersOfJudgeBatch(sql, id),
        listJudgeBatchItems(sql, id, { status: 'judged', limit }),
        listJudgeBatchItems(sql, id, { status: 'failed', limit }),
      ]);
      return success(presentBatch(batch, { progress: progress.get(id), answers, judged, failed }));
    },
  );

  /** @throws TandemError CALL_NOT_FOUND, TRANSCRIPT_NOT_OWNED, VALIDATION_FAILED when nothing was said, or not all yet */
  async function candidateOfCall(id: string, principal: Principal): Promise<Candidate> {
    const { workspaceId } = principal;
    const call = REFERENCE.test(id) ? await getCall(sql, { workspaceId, idOrReference: id }) : null;
    if (call === null) throw new TandemError('CALL_NOT_FOUND', 'There is no such call in the workspace.');
    if (!mayHear(call, principal)) {
      throw new TandemError('TRANSCRIPT_NOT_OWNED', 'The transcript belongs to another user of the workspace.');
    }
    const { transcript, segments } = (await getTranscript(sql, call.callId)) ?? { transcript: null, segments: [] };
    // Half a conversation would be judged as if it were the whole.
    if (!isFinalState(call.state) || transcript?.status === 'in_progress') {
      const message =
        'is not over, or what was said last is still being understood: try again later, or send transcript';
      throw validationFailed([{ path: 'call_id', message }]);
    }
    const lines = segments.map(({ leg, text, startMs }) => ({ leg, text, start: seconds(startMs) }));
    return requireSomething(candidateOfTranscript(lines), 'call_id');
  }
}

/** Null for what was not sent, and for a field that may be null. */
function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
