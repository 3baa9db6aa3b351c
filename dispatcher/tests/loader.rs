#[test]
fn t() { println!("{:?}", std::fs::read_dir(std::env::current_exe().unwrap().parent().unwrap()).unwrap().map(|e| e.unwrap().file_name()).filter(|n| n.to_string_lossy().ends_with(".so")).collect::<Vec<_>>()); }
