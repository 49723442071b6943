import { Type } from 'typebox';
import { TimeSchema } from './envelope.ts';

export const AsCookieSchema = Type.Boolean({
  default: false,
  description:
    'Returns the token in the HttpOnly cookie `tandem_session` instead of the body. For pages of this server. Tandem extension.',
});

export const TOKEN_EXAMPLE = {
  token: 'eyJhbGciOiJFZERTQSJ9.eyJ1c2VyX2lkIjoxN30.c2lnbmF0dXJl',
  token_type: 'Bearer',
  expires_at: '2026-01-31T21:30:00.000Z',
  user: { id: 17, email: 'ada@example.com', name: 'Ada' },
};

export const TOKEN_FIELDS = {
  token: Type.Optional(
    Type.String({
      description: 'JWT with the claims iss, aud, sub, user_id, iat, exp and jti. Missing with `cookie: true`.',
    }),
  ),
  token_type: Type.Optional(Type.Literal('Bearer', { description: 'Missing with `cookie: true`.' })),
  expires_at: { ...TimeSchema, description: 'When the token expires.' },
  user: Type.Object({ id: Type.Integer(), email: Type.String(), name: Type.String() }, { description: 'The user.' }),
};

export const LoggedInSchema = Type.Object(TOKEN_FIELDS, { examples: [TOKEN_EXAMPLE] });
