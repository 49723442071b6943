import { Type } from 'typebox';

export const InvitationTokenSchema = Type.String({
  maxLength: 100,
  description: 'Token of an invitation.',
  examples: ['inv_8Jm0yq3v1c5s7u9w2x4z6A8C0E2G4I6K8M0O2Q4S6U8'],
});
