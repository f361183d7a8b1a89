//! Commands of real sessions, with and without effects.

use super::*;

const WITH: &[&str] = &[
    "git commit -m 'x'",
    "cd app && FOO=1 git push origin main",
    "git -c user.name=l -c user.email=l@x commit -m 'event store'",
    "git commit -m \"$(cat <<'EOF'\nfix: x\n\nCo-Authored-By: y\nEOF\n)\"",
    "git -C ../x push",
    "git tag v1.2.0",
    "git tag -a v1 -m 'x'",
    "git branch -D old",
    "git branch feature",
    "git stash",
    "git stash pop",
    "git checkout -b feature",
    "git worktree add ../x",
    "bash -c \"git push\"",
    "bash -lc 'cd x && git push origin main'",
    "ssh prod \"systemctl restart app\"",
    "ssh -p 2222 -i key deploy@prod sudo systemctl restart app",
    "npm publish --access public",
    "npm install left-pad",
    "npm run seed",
    "npm run db:migrate",
    "npm run deploy -- --prod",
    "yarn deploy",
    "pip install x",
    "python -m pip install x",
    "cargo add serde",
    "cargo run --bin migrate",
    "sudo apt-get install -y jq",
    "apt install jq",
    "./scripts/deploy.sh staging",
    "./scripts/migrate.sh staging",
    "bash scripts/migrate.sh staging 2>&1 | tail -3",
    "python manage.py migrate",
    "npx prisma migrate deploy",
    "curl -X POST http://localhost/orders",
    "curl -sSf -XPOST https://x/y",
    "curl --json '{}' https://x",
    "psql -c \"UPDATE users SET a=1\"",
    "psql mydb < dump.sql",
    "psql <<'SQL'\nINSERT INTO t VALUES (1);\nSQL",
    "sqlite3 a.db 'delete from t'",
    "redis-cli set a 1",
    "kubectl -n x apply -f y.yaml",
    "kubectl exec -it pod -- psql -c 'drop table t'",
    "docker compose exec app php artisan migrate",
    "docker run -d --name db postgres",
    "gh pr create --fill",
    "gh release create v1",
    "gh workflow run deploy.yml",
    "gh api repos/a/b/issues -f title=x",
    "rm -rf build",
    "aws s3api create-bucket --bucket b",
    "make release",
    "timeout 60 make deploy",
];

const WITHOUT: &[&str] = &[
    "git status",
    "git log --oneline",
    "git branch",
    "git branch -a",
    "git branch --show-current",
    "git tag",
    "git tag -l 'v*'",
    "git stash list",
    "git checkout -- src/a.rs",
    "git worktree list",
    "git remote -v",
    "git fetch",
    "git push --dry-run",
    "gh run list",
    "gh release list",
    "gh pr view 3 --comments",
    "docker run --rm alpine true",
    "docker ps",
    "./build.sh --release",
    "cargo build --release",
    "make test # deploy later",
    "cargo test",
    "cargo test migrate",
    "pytest tests/test_migrate.py",
    "npm test",
    "npm run dev",
    "npm run lint",
    "npx prisma migrate status",
    "eslint src/migrate.ts",
    "psql -c \"select updated_at from t\"",
    "psql -c \"select * from t where action = 'delete'\"",
    "redis-cli get offset",
    "kubectl exec -it pod -- ls",
    "kubectl rollout status deploy/x",
    "terraform plan",
    "aws s3 ls s3://b",
    "mkdir -p scripts; printf 'echo migrated staging' > scripts/migrate.sh; chmod +x scripts/migrate.sh",
    "cat > scripts/deploy.sh <<'EOF'\ngit push\nnpm publish\nEOF",
    "cat deploy.sh",
    "echo 'git push; npm publish'",
    "rg -n \"git push && deploy\" docs",
    "curl -s http://x/health",
    "ls release/",
    "grep -r migrate .",
    "bash -c 'ls -la'",
    "bash -n scripts/deploy.sh",
    "cargo test -- migrate",
    "npm run test -- deploy",
    "python -m pytest tests/migrate",
    "alembic revision -m 'deploy x'",
    "ssh prod uptime",
    "ssh prod 'tail -f /var/log/deploy.log'",
];

#[test]
fn commands_with_effects_are_known() {
    let missed: Vec<&&str> = WITH.iter().filter(|line| !has_effect(line)).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn looking_and_writing_files_has_none() {
    let wrong: Vec<&&str> = WITHOUT.iter().filter(|line| has_effect(line)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_line_is_read_as_a_shell_reads_it() {
    let words = |line: &str| shell::pieces(line);
    assert_eq!(words("a 'b c'\"d\" 2>&1 # e"), [["a", "b cd"]]);
    assert_eq!(words("a > f; b|c"), [["a"], ["b"], ["c"]]);
    assert_eq!(words("a <<X\none\nX\nb"), [vec!["a", "one\n"], vec!["b"]]);
    assert!(words("'never closed").len() == 1 && words("").is_empty());
}

proptest::proptest! {
    #[test]
    fn any_line_is_read(line in "[ -~\\n]{0,80}|\\PC{0,40}") {
        let _ = has_effect(&line);
        let nested = format!("bash -c '{line}'");
        let _ = has_effect(&nested);
    }
}
