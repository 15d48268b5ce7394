Require Import Arith Lia.
Fixpoint sum (n : nat) : nat := match n with 0 => 0 | S m => n + sum m end.
Lemma sum_closed : forall n, 2 * sum n = n * (n + 1).
Proof. induction n; simpl; lia. Qed.
Goal forall a b c d e f g h : nat, a < b -> b < c -> c < d -> d < e -> e < f -> f < g -> g < h -> a + 7 <= h.
Proof. intros; lia. Qed.
Fixpoint fib n := match n with 0 => 1 | S m => match m with 0 => 1 | S k => fib m + fib k end end.
Eval compute in fib 19.
Eval lazy in fib 18.
