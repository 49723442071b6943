import { Button, Center, Group, Loader, Stack, Text, Title } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { CircleAlert, Inbox, Lock, type LucideIcon, SearchX, WalletMinimal } from 'lucide-react';
import type { ReactNode } from 'react';
import { ApiError } from '../app/api-error.ts';
import { stateText } from '../text/app.ts';

/** Placeholder for the content of a page or a part of it. */
interface StateProps {
  icon?: LucideIcon;
  title: string;
  /** Explanation and advice. */
  children?: ReactNode;
  /** Buttons. */
  actions?: ReactNode;
  role?: 'status' | 'alert';
}

export function EmptyState({ icon: Icon = Inbox, title, children, actions, role = 'status' }: StateProps) {
  return (
    <Center py="xl" px="md" role={role}>
      <Stack align="center" gap="xs" maw={480}>
        <Icon size={32} strokeWidth={1.5} color="var(--mantine-color-dimmed)" aria-hidden />
        <Title order={2} size="h4" ta="center">
          {title}
        </Title>
        {children && (
          <Text component="div" c="dimmed" ta="center" size="sm">
            {children}
          </Text>
        )}
        {actions && <Group mt="xs">{actions}</Group>}
      </Stack>
    </Center>
  );
}

export function LoadingState() {
  return (
    <Center py="xl" role="status" aria-label={stateText.loading}>
      <Loader size="sm" />
    </Center>
  );
}

export function NotFoundState() {
  return (
    <EmptyState icon={SearchX} title={stateText.notFoundTitle} actions={<HomeButton />}>
      {stateText.notFoundHint}
    </EmptyState>
  );
}

/** An error with advice: 401, 402 and 403 have an action of their own; otherwise the server's message has it. */
export function ErrorState({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const { status, message, requestId } = described(error);
  if (status === 403) {
    return (
      <EmptyState icon={Lock} title={stateText.deniedTitle} role="alert">
        <p>{message}</p>
        {stateText.denied}
      </EmptyState>
    );
  }
  if (status === 402) {
    const action = (
      <Button component={Link} to="/wallet" variant="light">
        {stateText.toWallet}
      </Button>
    );
    return (
      <EmptyState icon={WalletMinimal} title={stateText.rechargeTitle} role="alert" actions={action}>
        {message}
      </EmptyState>
    );
  }
  const again = onRetry && (
    <Button variant="light" onClick={onRetry}>
      {stateText.retry}
    </Button>
  );
  const signIn = (
    <Button component={Link} to="/login" variant="light">
      {stateText.signInAgain}
    </Button>
  );
  return (
    <EmptyState icon={CircleAlert} title={stateText.errorTitle} role="alert" actions={status === 401 ? signIn : again}>
      <p>{message}</p>
      {requestId && <Text size="xs">{stateText.requestId(requestId)}</Text>}
    </EmptyState>
  );
}

function described(error: unknown): { status: number; message: string; requestId: string | null } {
  if (error instanceof ApiError) return error;
  return { status: 0, message: error instanceof Error ? error.message : String(error), requestId: null };
}

function HomeButton() {
  return (
    <Button component={Link} to="/live" variant="light">
      {stateText.home}
    </Button>
  );
}
