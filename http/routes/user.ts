import { Type } from 'typebox';
import { getUserProfile, onboardUser, saveMarketingConsent, type UserProfile } from '../../storage/queries/users.ts';
import { callerOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { baseUrlOf } from '../playback.ts';
import { nullable, REFUSALS, success, successOf, TimeSchema } from '../schemas/envelope.ts';
import { unsubscribeToken } from '../unsubscribe-token.ts';

export function userRoutes(app: HttpApp, context: HttpContext): void {
  const { sql, urlSigningSecret, logger, now } = context;

  app.post(
    '/user/onboarding',
    {
      config: { access: 'user' },
      schema: {
        tags: ['accounts'],
        operationId: 'completeOnboarding',
        summary: 'Save onboarding choices',
        description:
          'Saves what a new user chose. You can repeat it. The server sets consent_timestamp and consent_source and ignores your values. Consent is saved last, on a best-effort basis: check the response for what is stored.',
        body: OnboardingBody,
        response: { 200: successOf(ProfileSchema, 'The stored choices.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { userId } = callerOf(request);
      const { default_voice_id: defaultVoiceId, marketing_consent: consent } = request.body;
      await onboardUser(sql, { userId, defaultVoiceId, now: now() });
      if (consent !== undefined) {
        await saveMarketingConsent(sql, { userId, consent, source: 'onboarding', now: now() }).catch((error: unknown) =>
          logger.warn({ err: error, userId }, 'saving marketing consent failed'),
        );
      }
      const token = unsubscribeToken(userId, urlSigningSecret);
      const unsubscribeUrl = `${baseUrlOf(context, request)}/unsubscribe?token=${token}`;
      return success(presentProfile(await getUserProfile(sql, userId), unsubscribeUrl));
    },
  );
}

const OnboardingBody = Type.Object(
  {
    default_voice_id: Type.Optional(
      Type.String({ minLength: 1, maxLength: 128, pattern: '^[^\\u0000]+$', description: 'Id of the default voice.' }),
    ),
    marketing_consent: Type.Optional(Type.Boolean({ description: 'True if the user agrees to marketing e-mails.' })),
    consent_timestamp: Type.Optional(Type.Unknown({ description: 'Ignored.' })),
    consent_source: Type.Optional(Type.Unknown({ description: 'Ignored.' })),
  },
  {
    additionalProperties: false,
    examples: [{ default_voice_id: '7c1d2f5e-4a7b-4f0e-9b5c-1f2e3d4c5b6a', marketing_consent: true }],
  },
);

const ProfileSchema = Type.Object(
  {
    user_id: Type.Integer({ description: 'Id of the user.' }),
    onboarded_at: { ...TimeSchema, description: 'When onboarding was completed first.' },
    default_voice_id: nullable(Type.String({ description: 'Id of the default voice.' })),
    marketing_consent: Type.Boolean({ description: 'True if the user agrees to marketing e-mails.' }),
    consent_timestamp: nullable({ ...TimeSchema, description: 'When the consent was given or withdrawn.' }),
    consent_source: nullable(
      Type.Enum(['onboarding', 'unsubscribe'], { description: 'How the consent was given or withdrawn.' }),
    ),
    unsubscribe_url: Type.String({ format: 'uri', description: 'URL for List-Unsubscribe headers (RFC 8058).' }),
  },
  {
    examples: [
      {
        user_id: 17,
        onboarded_at: '2026-01-31T09:30:00.000Z',
        default_voice_id: '7c1d2f5e-4a7b-4f0e-9b5c-1f2e3d4c5b6a',
        marketing_consent: true,
        consent_timestamp: '2026-01-31T09:30:00.000Z',
        consent_source: 'onboarding',
        unsubscribe_url: 'https://voice.example.com/unsubscribe?token=17.c2lnbmF0dXJl',
      },
    ],
  },
);

function presentProfile(profile: UserProfile, unsubscribeUrl: string) {
  return {
    user_id: profile.id,
    onboarded_at: profile.onboardedAt?.toISOString() ?? null,
    default_voice_id: profile.defaultVoiceId,
    marketing_consent: profile.marketingConsent,
    consent_timestamp: profile.consentTimestamp?.toISOString() ?? null,
    consent_source: profile.consentSource,
    unsubscribe_url: unsubscribeUrl,
  };
}
