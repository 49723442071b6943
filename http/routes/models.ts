import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { REFUSALS, responseOf } from '../schemas/envelope.ts';
import {
  ModelSchema,
  type PublicModel,
  presentAlias,
  presentEmbedder,
  presentLanguageModel,
  presentRecogniser,
  presentVoiceTier,
} from '../schemas/model.ts';

const ListResponse = Type.Object(
  { success: Type.Literal(true), object: Type.Literal('list'), data: Type.Array(ModelSchema) },
  { description: 'The models.' },
);

const ModelResponse = Type.Object(
  { success: Type.Literal(true), ...ModelSchema.properties },
  { description: 'The model.' },
);

/** Serves `/models`, and `/v1/models` for OpenAI clients. */
export function modelRoutes(app: HttpApp, context: HttpContext): void {
  const { models, transcriber, voices, memory, logger } = context;
  for (const [path, operationId] of [
    ['/models', 'listModels'],
    ['/v1/models', 'listModelsForOpenai'],
  ] as const) {
    app.get(
      path,
      {
        config: { access: 'member' },
        schema: {
          tags: ['platform'],
          operationId,
          summary: operationId === 'listModels' ? 'List models' : 'List models (OpenAI clients)',
          description:
            'Returns the chat, judge, speech-to-text, text-to-speech and embedding models. An entry with `resolves_to` is an alias. Language models are missing if none is configured or their server does not respond.',
          response: { 200: responseOf(ListResponse), ...REFUSALS },
        },
      },
      async (request) => {
        const data = await allModels(principalOf(request).workspaceId);
        return { success: true, object: 'list', data };
      },
    );
  }

  app.get(
    '/v1/models/*',
    {
      config: { access: 'member' },
      schema: {
        tags: ['platform'],
        operationId: 'getModelForOpenai',
        summary: 'Get a model',
        description: 'Returns a model by its id or alias. A slash in the id need not be encoded.',
        params: Type.Object({ '*': Type.String({ title: 'id', description: 'Id or alias from GET /models.' }) }),
        response: { 200: responseOf(ModelResponse), ...REFUSALS },
      },
    },
    async (request) => {
      const models = await allModels(principalOf(request).workspaceId);
      const model = models.find(({ id }) => id === request.params['*']);
      if (model === undefined) {
        throw new TandemError('MODEL_NOT_FOUND', 'No model has this id. GET /models lists the available ones.');
      }
      return { success: true, ...model };
    },
  );

  async function allModels(workspaceId: string): Promise<PublicModel[]> {
    const [language, recognisers, tiers] = await Promise.all([
      languageModels(),
      transcriber.models(),
      voiceTiers(workspaceId),
    ]);
    return [
      ...language,
      ...recognisers.map(presentRecogniser),
      ...tiers.map(presentVoiceTier),
      presentEmbedder(memory.embeddingModel()),
    ];
  }

  async function languageModels(): Promise<PublicModel[]> {
    try {
      const { models: listed } = await models.list();
      const entries = new Map(listed.map((model) => [model.id, presentLanguageModel(model)]));
      const aliases = [...(await models.aliases())].flatMap(([name, id]) => {
        const target = entries.get(id);
        return target === undefined ? [] : [presentAlias(name, target)];
      });
      const named = new Set(aliases.map(({ id }) => id));
      // An alias takes precedence over a model of that name.
      return [...aliases, ...[...entries.values()].filter(({ id }) => !named.has(id))];
    } catch (error) {
      if (!(error instanceof TandemError)) throw error;
      logger.warn({ code: error.code }, 'listing language models failed');
      return [];
    }
  }

  async function voiceTiers(workspaceId: string): Promise<('quality' | 'fast')[]> {
    const tiers = ['quality', 'fast'] as const;
    const listed = await Promise.all(tiers.map((tier) => voices.list({ workspaceId, tier })));
    return tiers.filter((_, index) => listed[index]!.length > 0);
  }
}
