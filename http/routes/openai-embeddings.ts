import { TandemError } from '../../machines/errors.ts';
import { principalOf } from '../auth.ts';
import { billingHeaders } from '../billing-headers.ts';
import { clientSignal } from '../client-signal.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { REFUSALS } from '../schemas/envelope.ts';
import {
  checkEmbeddingsBody,
  EmbeddingsBody,
  EmbeddingsResponse,
  OPENAI_EMBEDDING_MODELS,
  presentEmbeddings,
} from '../schemas/openai-embedding.ts';

const BODY_LIMIT_BYTES = 2 * 2 ** 20;

/** Serves `client.embeddings` of OpenAI clients. */
export function openaiEmbeddingRoutes(app: HttpApp, { memory, limits, closing }: HttpContext): void {
  app.post(
    '/v1/embeddings',
    {
      config: { access: 'member', billed: true },
      bodyLimit: BODY_LIMIT_BYTES,
      validatorCompiler: () => (body: unknown) => {
        const error = checkEmbeddingsBody(body);
        return error === null ? { value: body } : { error };
      },
      schema: {
        tags: ['memory'],
        operationId: 'createEmbeddings',
        summary: 'Create embeddings (OpenAI clients)',
        description:
          "Embeds texts with the embedder of memory, in the format of OpenAI's API. Billed per character at the price of memory, after the texts were embedded: a request that fails is free. The body can have up to 2 MiB. A request counts among the 8 completions and evaluations that a user can run at a time.",
        body: EmbeddingsBody,
        response: { 200: EmbeddingsResponse, ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { input, dimensions = null, encoding_format: format = 'float' } = request.body;
      const model = memory.embeddingModel();
      requireModel(request.body.model ?? model, model);
      const principal = principalOf(request);
      const { workspaceId, userId, apiKeyId } = principal;
      await using _slot = await limits.acquireSlot({ userId, kind: 'llm' });
      const texts = typeof input === 'string' ? [input] : input;
      const embedded = await memory.embedTexts(
        { texts, dimensions, by: { workspaceId, userId, apiKeyId, operationId: request.idempotentId } },
        clientSignal(reply, closing),
      );
      reply.headers(billingHeaders(embedded.charge, principal));
      const json = await presentEmbeddings(embedded, { model, format });
      return reply.type('application/json; charset=utf-8').send(json);
    },
  );
}

function requireModel(named: string, model: string): void {
  if (named === model || `openai:${named}` === model || OPENAI_EMBEDDING_MODELS.includes(named)) return;
  throw new TandemError(
    'MODEL_NOT_FOUND',
    `No embedding model has this id. Send ${model}, or text-embedding-3-small, which selects it.`,
  );
}
