import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { REFUSALS, responseOf } from '../schemas/envelope.ts';
import {
  ModelSchema,
  type PublicModel,
  presentAlias,
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

/** `/models`, and under `/v1/` for clients of OpenAI. */
export function modelRoutes(app: HttpApp, context: HttpContext): void {
  const { models, transcriber, voices, logger } = context;
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
          summary: 'Models there are to chat, to judge, to recognise and to speak with',
          description:
            'An alias is an entry with `resolves_to`. Language models are missing while none is configured, and while their server does not answer.',
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
    '/v1/models/:id',
    {
      config: { access: 'member' },
      schema: {
        tags: ['platform'],
        operationId: 'getModelForOpenai',
        summary: 'One of the models',
        params: Type.Object({ id: Type.String({ description: 'An id or alias of GET /models.' }) }),
        response: { 200: responseOf(ModelResponse), ...REFUSALS },
      },
    },
    async (request) => {
      const models = await allModels(principalOf(request).workspaceId);
      const model = models.find(({ id }) => id === request.params.id);
      if (model === undefined)
        throw new TandemError('MODEL_NOT_FOUND', 'There is no such model: GET /models lists them.');
      return { success: true, ...model };
    },
  );

  async function allModels(workspaceId: string): Promise<PublicModel[]> {
    const [language, recognisers, tiers] = await Promise.all([
      languageModels(),
      transcriber.models(),
      voiceTiers(workspaceId),
    ]);
    return [...language, ...recognisers.map(presentRecogniser), ...tiers.map(presentVoiceTier)];
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
      // An alias hides the model that has its name.
      return [...aliases, ...[...entries.values()].filter(({ id }) => !named.has(id))];
    } catch (error) {
      if (!(error instanceof TandemError)) throw error;
      logger.warn({ code: error.code }, 'language models could not be listed');
      return [];
    }
  }

  async function voiceTiers(workspaceId: string): Promise<('quality' | 'fast')[]> {
    const tiers = ['quality', 'fast'] as const;
    const listed = await Promise.all(tiers.map((tier) => voices.list({ workspaceId, tier })));
    return tiers.filter((_, index) => listed[index]!.length > 0);
  }
}
