import { Type } from 'typebox';
import { MOST_CALLS_PER_BATCH } from '../../actors/judge/judge-desk.ts';
import { type Candidate, candidateOfTranscript, type PlainQuestions } from '../../language/judge/rubric.ts';
import { TandemError } from '../../machines/errors.ts';
import { seconds } from '../../machines/utterances.ts';
import { type CallRow, getCall, isFinalState } from '../../storage/queries/calls.ts';
import { findEvaluation, listEvaluations } from '../../storage/queries/evaluations.ts';
import {
  answersOfJudgeBatch,
  findJudgeBatch,
  listJudgeBatches,
  listJudgeBatchItems,
  progressOfJudgeBatches,
} from '../../storage/queries/judge-batches.ts';
import { getTranscript } from '../../storage/queries/transcripts.ts';
import { type Principal, principalOf, requireCredentials } from '../auth.ts';
import { billingHeaders } from '../billing-headers.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { abortWithClient } from '../credential-watch.ts';
import { readCandidate, requireValidCandidate } from '../judged-candidate.ts';
import { mayAccessMedia } from '../playback.ts';
import { PAGE_QUERY, pageOf, paginationOf, REFUSALS, success, successOf } from '../schemas/envelope.ts';
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
import { readCallable } from '../schemas/phone-number.ts';
import { REFERENCE } from '../schemas/placement.ts';
import { readRubricQuestions } from '../schemas/rubric.ts';
import { readTime } from '../schemas/time.ts';
import { validationFailed } from '../validation.ts';
import { requireRubric } from './judge-rubrics.ts';

const TAGS = ['judge'];
/** Fits an hour of transcript with word timestamps. */
const BODY_LIMIT_BYTES = 2 ** 20;
const EVALUATED = successOf(EvaluationSchema, 'The evaluation.');

export function judgeRoutes(app: HttpApp, context: HttpContext): void {
  const { sql, judge, limits, numberPlan } = context;

  app.get(
    '/judge/models',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'listJudgeModels',
        summary: 'List judge models',
        description:
          'Returns the models and aliases that POST /judge/evaluate accepts. The list is cached for five minutes. It is empty if no language model is configured. Evaluations report the versioned id that an alias resolved to.',
        response: {
          200: successOf(
            Type.Object({
              models: Type.Array(JudgeModelSchema),
              cached: Type.Boolean({ description: 'True if the list came from the cache.', examples: [false] }),
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
      config: { access: 'writer', billed: true },
      bodyLimit: BODY_LIMIT_BYTES,
      schema: {
        tags: TAGS,
        operationId: 'evaluate',
        summary: 'Evaluate a text, a conversation or a call',
        description:
          'A language model answers the questions of a rubric about a candidate. Send `rubric_id` or `questions`, and exactly one of `output`, `transcript`, `messages` and `call_id`. Every answer is a criterion of the rubric, and instructions in the candidate are ignored. The candidate is not stored, except quotes in `evidence`. Billed per token; a failed or cancelled evaluation is free.',
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
      const { candidate, callId } =
        'candidate' in subject ? { ...subject, callId: null } : await candidateOfCall(subject.callId, principal);
      await using _slot = await limits.acquireSlot({ userId, kind: 'llm' });
      const ended = new AbortController();
      abortWithClient(context, { principal, reply, ended });
      try {
        const { evaluation, charge } = await judge.evaluate(
          {
            ...{ workspaceId, userId, apiKeyId, candidate, callId },
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
        if (charge !== null) reply.headers(billingHeaders(charge, principalOf(request)));
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
    '/judge/evaluations',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'listEvaluations',
        summary: 'List evaluations',
        description:
          'Returns the completed evaluations that you requested, newest first, including those of your batches. Tandem extension.',
        querystring: Type.Object({
          ...PAGE_QUERY,
          call_id: Type.Optional(
            Type.String({ description: 'Only evaluations of this call: its call_id or reference_id.' }),
          ),
        }),
        response: {
          200: successOf(pageOf('evaluations', EvaluationSchema), 'One page of evaluations.'),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const principal = principalOf(request);
      const { workspaceId, userId } = principal;
      const { call_id: id, ...page } = request.query;
      const callId = id === undefined ? undefined : (await requireCall(id, principal)).callId;
      const { rows, total } = await listEvaluations(sql, { workspaceId, userId, callId }, page);
      return success({ evaluations: rows.map(presentEvaluation), pagination: paginationOf(page, total) });
    },
  );

  app.get(
    '/judge/evaluations/:id',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'getEvaluation',
        summary: 'Get an evaluation',
        description: 'Only the user who requested the evaluation can read it.',
        params: Type.Object({ id: Type.String({ maxLength: 64, description: 'Id of the evaluation.' }) }),
        response: { 200: successOf(EvaluationSchema, 'The evaluation.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId, userId } = principalOf(request);
      const evaluation = await findEvaluation(sql, { id: request.params.id, workspaceId, userId });
      if (evaluation === null) {
        throw new TandemError('EVALUATION_NOT_FOUND', 'You have no evaluation with this id.');
      }
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
        summary: 'Start a batch of evaluations',
        description:
          'Evaluates finished, transcribed calls that you placed against a rubric, in the background. Each call is evaluated and billed once, like POST /judge/evaluate. A key with scopes also needs `recordings:read`.',
        body: BatchBody,
        response: { 202: successOf(StartedBatchSchema, 'The batch was started.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { rubric_id: rubricId, call_ids: callIds, model, samples = 1, ...filter } = request.body;
      const principal = principalOf(request);
      requireCredentials(principal, { scope: 'recordings:read' });
      const { workspaceId, userId, apiKeyId } = principal;
      if (callIds !== undefined && Object.keys(filter).length > 0) {
        throw validationFailed([
          { path: 'call_ids', message: 'must not be combined with from, to, state or agent_number' },
        ]);
      }
      const from = readTime('from', filter.from);
      const to = readTime('to', filter.to);
      const agentNumber = readCallable('agent_number', filter.agent_number, numberPlan);
      const rubric = await requireRubric(sql, { id: rubricId, principal });
      const matching = {
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
        calls: callIds === undefined ? matching : { callIds },
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
        summary: 'List batches',
        description: 'Returns the batches that you started, newest first.',
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
        summary: 'Get a batch',
        description: 'Returns the progress of a batch, how often each answer was given, and the failed calls.',
        params: Type.Object({ id: Type.String({ maxLength: 64, description: 'Id of the batch.' }) }),
        response: { 200: successOf(BatchSchema, 'The batch so far.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId, userId } = principalOf(request);
      const batch = await findJudgeBatch(sql, { id: request.params.id, workspaceId, userId });
      if (batch === null) throw new TandemError('JUDGE_BATCH_NOT_FOUND', 'You have no batch with this id.');
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

  /** @throws TandemError CALL_NOT_FOUND, TRANSCRIPT_NOT_OWNED, VALIDATION_FAILED without a complete transcript */
  async function candidateOfCall(id: string, principal: Principal): Promise<{ candidate: Candidate; callId: string }> {
    const call = await requireCall(id, principal);
    if (!mayAccessMedia(call, principal)) {
      throw new TandemError(
        'TRANSCRIPT_NOT_OWNED',
        'Another user placed this call. Only that user can have it evaluated.',
      );
    }
    const { transcript, segments } = (await getTranscript(sql, call.callId)) ?? { transcript: null, segments: [] };
    // An incomplete conversation would be judged as if it were complete.
    if (!isFinalState(call.state) || transcript?.status === 'in_progress') {
      const message = 'must be a finished call with a complete transcript. Retry later, or send transcript';
      throw validationFailed([{ path: 'call_id', message }]);
    }
    const lines = segments.map(({ leg, text, startMs }) => ({ speaker: leg, text, start: seconds(startMs) }));
    return { candidate: requireValidCandidate(candidateOfTranscript(lines), 'call_id'), callId: call.callId };
  }

  /** @throws TandemError CALL_NOT_FOUND */
  async function requireCall(id: string, { workspaceId }: Principal): Promise<CallRow> {
    const call = REFERENCE.test(id) ? await getCall(sql, { workspaceId, idOrReference: id }) : null;
    if (call === null) {
      throw new TandemError('CALL_NOT_FOUND', 'No call in this workspace has this id or reference_id.');
    }
    return call;
  }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
