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
        summary: 'What a new user chose; may be sent again',
        description:
          'consent_timestamp and consent_source are set here; those of the client are ignored. Consent is saved after the rest and best effort: the answer tells what is stored.',
        body: OnboardingBody,
        response: { 200: successOf(ProfileSchema, 'What is stored now.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { userId } = callerOf(request);
      const { default_voice_id: defaultVoiceId, marketing_consent: consent } = request.body;
      await onboardUser(sql, { userId, defaultVoiceId, now: now() });
      if (consent !== undefined) {
        await saveMarketingConsent(sql, { userId, consent, source: 'onboarding', now: now() }).catch((error: unknown) =>
          logger.warn({ err: error, userId }, 'consent was not saved'),
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
    default_voice_id: Type.Optional(Type.String({ minLength: 1, maxLength: 128, pattern: '^[^\\u0000]+$' })),
    marketing_consent: Type.Optional(Type.Boolean({ description: 'Whether mails with news are welcome.' })),
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
    user_id: Type.Integer(),
    onboarded_at: TimeSchema,
    default_voice_id: nullable(Type.String()),
    marketing_consent: Type.Boolean(),
    consent_timestamp: nullable(TimeSchema),
    consent_source: nullable(Type.Enum(['onboarding', 'unsubscribe'])),
    unsubscribe_url: Type.String({ format: 'uri', description: 'For List-Unsubscribe headers (RFC 8058).' }),
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
