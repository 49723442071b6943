import { Stack, Text } from '@mantine/core';
import { useSession } from '../app/session.ts';
import { CopyBlock } from '../parts/copy-field.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { topUpText as text } from '../text/wallet.ts';

export function TopUpDialog({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const { server, workspace } = useSession();
  const takesCards = server.features.stripe === true;
  return (
    <Dialog opened={isOpen} onClose={onClose} title={text.title} size="lg">
      <Stack gap="sm">
        {takesCards && (
          <>
            <Text size="sm">{text.stripe}</Text>
            <CopyBlock value={`workspace_id=${workspace.id}`} label={text.stripeLabel} />
            <Text size="sm" c="dimmed">
              {text.stripeHint}
            </Text>
          </>
        )}
        <Text size="sm">{text.operator}</Text>
        <CopyBlock value={`npm run top-up -- 10 --workspace ${workspace.id}`} label={text.operatorLabel} />
        <Text size="sm" c="dimmed">
          {text.operatorHint} {!takesCards && text.noStripe}
        </Text>
      </Stack>
    </Dialog>
  );
}
